#include "chiliad/report/notable.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace chiliad::report {
namespace {

/// The rows of the lowest ranks, in their order.
class Lowest {
 public:
  explicit Lowest(size_t most) : most_(most) {}

  void offer(double rank, const PictureRow& row) {
    if (most_ == 0 || (rows_.size() == most_ && rank >= rows_.back().rank)) return;
    const auto is_same = [&](const Ranked& kept) {
      return kept.row.checksum == row.checksum && kept.row.bytes == row.bytes;
    };
    if (std::any_of(rows_.begin(), rows_.end(), is_same)) return;
    const auto place = std::upper_bound(rows_.begin(), rows_.end(), rank,
                                        [](double value, const Ranked& kept) { return value < kept.rank; });
    rows_.insert(place, {rank, row});
    if (rows_.size() > most_) rows_.pop_back();
  }
  [[nodiscard]] std::vector<PictureRow> rows() const {
    std::vector<PictureRow> rows;
    for (const Ranked& kept : rows_) rows.push_back(kept.row);
    return rows;
  }

 private:
  struct Ranked {
    double rank = 0.0;
    PictureRow row;
  };
  const size_t most_;
  std::vector<Ranked> rows_;
};

/// What is compared, and a sample.
using Mark = std::pair<uint64_t, int64_t>;

/// Sorts `marks`. `count`: of the groups of two and more.
std::vector<LikeSamples> group_marks(std::vector<Mark>& marks, size_t most, int64_t& count) {
  std::sort(marks.begin(), marks.end());
  std::vector<LikeSamples> groups;
  for (size_t begin = 0; begin < marks.size();) {
    size_t end = begin;
    while (end < marks.size() && marks[end].first == marks[begin].first) ++end;
    if (end - begin > 1) {
      LikeSamples group{{}, static_cast<int64_t>(end - begin)};
      for (size_t i = begin; i < std::min(end, begin + Notable::kMostNamed); ++i)
        group.samples.push_back(marks[i].second);
      groups.push_back(std::move(group));
    }
    begin = end;
  }
  count = static_cast<int64_t>(groups.size());
  std::sort(groups.begin(), groups.end(), [](const LikeSamples& a, const LikeSamples& b) {
    return a.count != b.count ? a.count > b.count : a.samples.front() < b.samples.front();
  });
  if (groups.size() > most) groups.resize(most);
  return groups;
}

class Finder {
 public:
  Finder(size_t most_drawn, size_t most)
      : most_(most), drawn_(most_drawn), smallest_(most), largest_(most), widest_(most), tallest_(most) {}

  void look_at(const index::Shard& shard, const index::Sample& sample, PictureRow row) {
    keys_.emplace_back(sample.key_hash, row.sample);
    for (row.part = sample.first_part; row.part < sample.first_part + sample.num_parts; ++row.part) {
      const index::Part& part = shard.parts[row.part];
      if (part.media != index::MediaType::kImage) continue;
      row.width = part.width;
      row.height = part.height;
      row.bytes = static_cast<int64_t>(part.length);
      row.checksum = part.checksum;
      pictures_.emplace_back(part.checksum ^ (part.length * 0x9e3779b97f4a7c15ULL), row.sample);
      (sample.flags & index::kBadImage) != 0 || row.width == 0 ? add_unusable(row)
                                                               : add_usable(row, sample.key_hash);
      return;
    }
  }

  [[nodiscard]] Notable found() {
    Notable found{
        drawn_.rows(), smallest_.rows(), largest_.rows(), widest_.rows(), tallest_.rows(), unusable_, {}, {}};
    found.same_keys = group_marks(keys_, most_, found.num_same_keys);
    found.same_pictures = group_marks(pictures_, most_, found.num_same_pictures);
    return found;
  }

 private:
  void add_unusable(const PictureRow& row) {
    if (unusable_.size() < most_) unusable_.push_back(row);
  }
  void add_usable(const PictureRow& row, uint64_t key_hash) {
    const double pixels = static_cast<double>(row.width) * static_cast<double>(row.height);
    const double ratio = static_cast<double>(row.width) / static_cast<double>(row.height);
    drawn_.offer(static_cast<double>(key_hash), row);
    smallest_.offer(pixels, row);
    largest_.offer(-pixels, row);
    widest_.offer(-ratio, row);
    tallest_.offer(ratio, row);
  }

  const size_t most_;
  Lowest drawn_;
  Lowest smallest_;
  Lowest largest_;
  Lowest widest_;
  Lowest tallest_;
  std::vector<PictureRow> unusable_;
  std::vector<Mark> keys_;
  std::vector<Mark> pictures_;
};

}  // namespace

Notable find_notable(const index::Index& index, size_t most_drawn, size_t most) {
  Finder finder(most_drawn, most);
  int64_t number = 0;
  for (uint32_t s = 0; s < index.num_shards(); ++s) {
    const index::ShardPtr shard = index.shard(s);
    for (const index::Sample& sample : shard->samples) {
      PictureRow row;
      row.sample = number++;
      row.shard = s;
      finder.look_at(*shard, sample, row);
    }
  }
  return finder.found();
}

}  // namespace chiliad::report
