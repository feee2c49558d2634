#include "chiliad/checkpoint/import.h"

#include <algorithm>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/weights/float_values.h"
#include "chiliad/weights/key_tables/model_keys.h"

namespace chiliad::checkpoint {
namespace {

constexpr int64_t kMostValues = 32 << 20;  // held at once; a row of any size

/// Rows of a parameter.
struct Piece {
  const spec::ParamDecl* param;
  bool trained;
  Box box;
  int64_t first;  ///< value of the parameter
};
using Group = std::vector<Piece>;

/// All parameters, in groups that are written one after the other, each as if by a rank of its own: a
/// checkpoint loads into any layout.
std::vector<Group> cut_into_groups(const spec::LayerTable& table, const spec::RunFile& run) {
  std::vector<Group> groups(1);
  int64_t held = 0;
  for (const auto& layer : table.layers) {
    const bool trained = run.optimizer.trains(layer.component);
    for (const auto& param : layer.params) {
      const bool flat = param.shape.rank() == 0;
      const int64_t rows = flat ? 1 : param.shape[0];
      const int64_t row_values = param.shape.count() / rows;
      const int64_t step = std::max<int64_t>(1, kMostValues / std::max<int64_t>(1, row_values));
      for (int64_t row = 0; row < rows; row += step) {
        const int64_t count = std::min(step, rows - row);
        if (held > 0 && held + count * row_values > kMostValues) {
          groups.emplace_back();
          held = 0;
        }
        held += count * row_values;
        const Box box = flat ? Box::whole(param.shape) : Box::rows(param.shape, row, count);
        groups.back().push_back({&param, trained, box, row * row_values});
      }
    }
  }
  return groups;
}

/// Reads groups of a source into memory and gives them as snapshots.
class GroupReader {
 public:
  GroupReader(const spec::LayerTable& table, const weights::WeightSource& source, const spec::RunFile& run)
      : source_(source),
        match_(weights::match_weights(table, source, weights::model_keys(run.model))),
        average_(run.optimizer.ema > 0.0) {}

  [[nodiscard]] SnapshotRing::View read(const Group& group, int rank, const std::string& state) {
    int64_t count = 0;
    int64_t largest = 0;
    for (const Piece& piece : group) {
      count += piece.box.count();
      largest = std::max(largest, piece.box.count());
    }
    values_.resize(static_cast<size_t>(count));
    if (std::ssize(zeros_) < largest) zeros_.resize(static_cast<size_t>(largest));
    SnapshotRing::View view{0, rank, state, {}, {}};
    float* next = values_.data();
    for (const Piece& piece : group) {
      read_piece(piece, {next, static_cast<size_t>(piece.box.count())});
      add_boxes(view, piece, next);
      next += piece.box.count();
    }
    return view;
  }

 private:
  void read_piece(const Piece& piece, std::span<float> out) const {
    const std::string& name = piece.param->name;
    const auto part = match_.part_of.find(name);
    const int64_t before = part == match_.part_of.end() ? 0 : part->second.index * piece.param->shape.count();
    weights::read_floats(source_, match_.key_of.at(name), before + piece.first, out);
  }

  void add_boxes(SnapshotRing::View& view, const Piece& piece, const float* values) const {
    const auto add = [&](const char* section, const std::string& name, const float* data) {
      const auto* bytes = reinterpret_cast<const std::byte*>(data);
      view.boxes.push_back({section, name, DType::kF32, piece.param->shape, piece.box, bytes});
      view.digests.push_back(positional_digest(DType::kF32, piece.param->shape, piece.box, bytes));
    };
    const std::string& name = piece.param->name;
    add("model", name, values);
    if (!piece.trained) return;
    add("optim", "exp_avg." + name, zeros_.data());
    add("optim", "exp_avg_sq." + name, zeros_.data());
    if (average_) add("ema", name, values);
  }

  const weights::WeightSource& source_;
  weights::KeyMatch match_;
  bool average_;
  std::vector<float> values_;
  std::vector<float> zeros_;
};

}  // namespace

ImportReport import_weights(const weights::WeightSource& source, const spec::RunFile& run,
                            const std::string& state, const std::filesystem::path& folder,
                            const std::function<void(int64_t, int64_t)>& progress) {
  const auto table = spec::make_layer_table(run.model);
  GroupReader reader(table, source, run);
  const auto groups = cut_into_groups(table, run);
  CheckpointWriter writer(folder, 0, static_cast<int>(groups.size()), spec::to_yaml(run));
  ImportReport report;
  report.path = writer.path();
  for (const auto& layer : table.layers) report.num_tensors += std::ssize(layer.params);
  const int64_t total = table.num_params() * dtype_bytes(DType::kF32);
  int64_t done = 0;
  try {
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto view = reader.read(groups[i], static_cast<int>(i), state);
      writer.write_rank(view);
      for (const OwnedBox& box : view.boxes) report.num_bytes += box.box.count() * dtype_bytes(box.dtype);
      for (const Piece& piece : groups[i]) done += piece.box.count() * dtype_bytes(DType::kF32);
      progress(done, total);
    }
    writer.commit();
  } catch (...) {
    writer.abandon();
    throw;
  }
  return report;
}

}  // namespace chiliad::checkpoint
