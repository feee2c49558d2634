#include "chiliad/stepplan/mixer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {
namespace {

constexpr int64_t kWhole = 1 << 20;  // parts of a share
constexpr int64_t kTableSteps = 512;

double weight_at(const spec::DataSource& source, int64_t step) {
  const auto& points = source.weight;
  const auto after =
      std::upper_bound(points.begin(), points.end(), step,
                       [](int64_t s, const spec::WeightPoint& point) { return s < point.step; });
  CHILIAD_CHECK(after != points.begin(), "weights of {} begin after step {}", source.name, step);
  const auto before = after - 1;
  if (!source.ramp || after == points.end()) return before->weight;
  const double way =
      static_cast<double>(step - before->step) / static_cast<double>(after->step - before->step);
  return before->weight + way * (after->weight - before->weight);
}

bool is_active(const spec::DataSource& source, const std::vector<bool>& active, size_t& leaf) {
  if (source.sources.empty()) return active[leaf++];
  bool any = false;
  for (const auto& child : source.sources) any = is_active(child, active, leaf) || any;
  return any;
}

void add_shares(const std::vector<spec::DataSource>& sources, int64_t step, const std::vector<bool>& active,
                double whole, size_t& leaf, std::vector<double>& shares) {
  std::vector<double> weights;
  size_t looked = leaf;
  for (const auto& source : sources)
    weights.push_back(is_active(source, active, looked) ? weight_at(source, step) : 0.0);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < sources.size(); ++i) {
    const double share = sum > 0.0 ? whole * weights[i] / sum : 0.0;
    if (sources[i].sources.empty()) {
      shares[leaf++] = share;
    } else {
      add_shares(sources[i].sources, step, active, share, leaf, shares);
    }
  }
}

/// Steps from which on a weight is another, or no longer on its way to one.
void collect_changes(const std::vector<spec::DataSource>& sources, std::vector<int64_t>& changes) {
  for (const auto& source : sources) {
    for (size_t i = 1; i < source.weight.size(); ++i) changes.push_back(source.weight[i].step);
    collect_changes(source.sources, changes);
  }
}

/// Shares in whole parts: the largest remainders get what rounding down leaves; who has a share has a part.
std::vector<int64_t> whole_parts(const std::vector<double>& shares) {
  std::vector<int64_t> parts;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = kWhole;
  for (size_t s = 0; s < shares.size(); ++s) {
    const double exact = shares[s] * static_cast<double>(kWhole);
    int64_t part = static_cast<int64_t>(std::floor(exact));
    if (part == 0 && shares[s] > 0.0) part = 1;
    parts.push_back(part);
    left -= part;
    if (shares[s] > 0.0) remainders.emplace_back(static_cast<double>(part) - exact, s);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; left > 0 && !remainders.empty(); ++i, --left)
    ++parts[remainders[i % remainders.size()].second];
  for (; left < 0; ++left) --*std::max_element(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::vector<spec::DataSource> leaves_of(const std::vector<spec::DataSource>& sources) {
  std::vector<spec::DataSource> leaves;
  for (const auto& source : sources) {
    if (source.sources.empty()) {
      leaves.push_back(source);
      continue;
    }
    for (auto& leaf : leaves_of(source.sources)) leaves.push_back(std::move(leaf));
  }
  return leaves;
}

SourceShares::SourceShares(const spec::DataOptions& options, const std::vector<int64_t>& sizes)
    : tree_(options.sources) {
  if (options.mixing != "weights") {
    tree_ = leaves_of(options.sources);
    const double power = options.mixing == "temperature" ? options.mixing_alpha : 1.0;
    for (size_t s = 0; s < tree_.size(); ++s) {
      tree_[s].weight = {{0, std::pow(static_cast<double>(sizes[s]), power)}};
      tree_[s].ramp = false;
    }
  }
  std::vector<int64_t> steps{0};
  collect_changes(tree_, steps);
  constant_from_ = *std::max_element(steps.begin(), steps.end());
  for (const int64_t step : steps) {
    const auto shares = at(step, std::vector<bool>(sizes.size(), true));
    if (std::accumulate(shares.begin(), shares.end(), 0.0) > 0.5) continue;
    throw InvalidInput(
        "data.sources",
        fmt::format("expected a weight above 0 in every step, got none at step {}. Give one", step));
  }
}

std::vector<double> SourceShares::at(int64_t step, const std::vector<bool>& active) const {
  std::vector<double> shares(active.size());
  size_t leaf = 0;
  add_shares(tree_, step, active, 1.0, leaf, shares);
  return shares;
}

Mixer::Mixer(SourceShares shares, Options options)
    : shares_(std::move(shares)), options_(std::move(options)) {
  CHILIAD_CHECK_GT(options_.batch, 0);
  const size_t count = options_.available.size();
  recent_ = {0, std::vector<int64_t>(count), std::vector<int64_t>(count)};
  table_.push_back(recent_);
  const auto& available = options_.available;
  if (std::all_of(available.begin(), available.end(), [](int64_t items) { return items < 0; }) &&
      shares_.constant_from() == 0) {
    period_ = kWhole / std::gcd(kWhole, options_.batch);
    const auto parts = whole_parts(shares_.at(0, std::vector<bool>(count, true)));
    for (const int64_t part : parts)
      period_items_.push_back(
          static_cast<int64_t>(static_cast<__int128>(part) * options_.batch * period_ / kWhole));
  }
  if (std::any_of(available.begin(), available.end(), [](int64_t items) { return items < 0; })) return;
  const int64_t all = std::accumulate(available.begin(), available.end(), int64_t{0});
  num_steps_ = (all + options_.batch - 1) / options_.batch;
}

void Mixer::settle_ended(State& state, std::vector<bool>& active) const {
  int64_t left_over = 0;
  for (size_t s = 0; s < active.size(); ++s) {
    active[s] = options_.available[s] < 0 || state.given[s] < options_.available[s];
    if (active[s]) continue;
    left_over += state.ahead[s];
    state.ahead[s] = 0;
  }
  const auto first = std::find(active.begin(), active.end(), true);
  if (first != active.end()) state.ahead[static_cast<size_t>(first - active.begin())] += left_over;
}

std::vector<int64_t> Mixer::parts_of(const State& state, const std::vector<bool>& active) const {
  const auto shares = shares_.at(state.step, active);
  if (std::accumulate(shares.begin(), shares.end(), 0.0) > 0.5) return whole_parts(shares);
  throw InvalidInput(
      "data.sources",
      fmt::format("expected a weight above 0 at step {} of a source whose epochs are not over, got none. "
                  "Give one, or more epochs",
                  state.step));
}

void Mixer::advance(State& state) const {
  const size_t count = options_.available.size();
  std::vector<bool> active(count);
  settle_ended(state, active);
  if (std::none_of(active.begin(), active.end(), [](bool is) { return is; })) {
    ++state.step;
    return;
  }
  const auto parts = parts_of(state, active);
  const auto room = [&](size_t s, int64_t taken) {
    return active[s] && (options_.available[s] < 0 || state.given[s] + taken < options_.available[s]);
  };
  std::vector<int64_t> taken(count);
  std::vector<int64_t> due(count);  // 2^20 times what is missing to the share after this step
  int64_t left = options_.batch;
  for (size_t s = 0; s < count; ++s) {
    due[s] = options_.batch * parts[s] - state.ahead[s];
    int64_t whole = std::max<int64_t>(0, due[s] / kWhole);
    if (options_.available[s] >= 0) whole = std::min(whole, options_.available[s] - state.given[s]);
    taken[s] = active[s] ? std::min(whole, left) : 0;
    due[s] -= taken[s] * kWhole;
    left -= taken[s];
  }
  while (left > 0) {
    // Whose next item is due first: (2^20 - due) / part steps from now; without a part, whoever is furthest
    // behind.
    size_t best = count;
    const auto before = [&](size_t a, size_t b) {
      if ((parts[a] > 0) != (parts[b] > 0)) return parts[a] > 0;
      if (parts[a] == 0) return due[a] > due[b];
      return static_cast<__int128>(kWhole - due[a]) * parts[b] <
             static_cast<__int128>(kWhole - due[b]) * parts[a];
    };
    const auto allowed = [&](size_t s, bool within) {
      return room(s, taken[s]) && (within ? due[s] > 0 : parts[s] > 0);
    };
    for (const bool within : {true, false}) {  // first those whom an item does not take beyond their share
      for (size_t s = 0; s < count; ++s)
        if (allowed(s, within) && (best == count || before(s, best))) best = s;
      if (best != count) break;
    }
    if (best == count) break;  // all end in this step
    ++taken[best];
    due[best] -= kWhole;
    --left;
  }
  for (size_t s = 0; s < count; ++s) {
    state.given[s] += taken[s];
    state.ahead[s] = -due[s];
  }
  ++state.step;
}

Mixer::State Mixer::state_at(int64_t step) const {
  std::lock_guard lock(mutex_);
  if (recent_.step > step || step - recent_.step > kTableSteps) {
    const auto known = std::min(static_cast<size_t>(step / kTableSteps), table_.size() - 1);
    recent_ = table_[known];
  }
  while (recent_.step < step) {
    advance(recent_);
    if (recent_.step == static_cast<int64_t>(table_.size()) * kTableSteps) table_.push_back(recent_);
  }
  return recent_;
}

std::vector<int64_t> Mixer::given_before(int64_t step) const {
  CHILIAD_CHECK_GE(step, 0);
  if (period_ == 0) return state_at(step).given;
  auto given = state_at(step % period_).given;
  for (size_t s = 0; s < given.size(); ++s) given[s] += step / period_ * period_items_[s];
  return given;
}

}  // namespace chiliad::stepplan
