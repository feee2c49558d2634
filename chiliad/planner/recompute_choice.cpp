#include "chiliad/planner/recompute_choice.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/planner/detail/layer_tapes.h"
#include "chiliad/planner/detail/timeline.h"
#include "chiliad/planner/state_memory.h"
#include "chiliad/spec/work.h"

namespace chiliad::planner {
namespace {

/// One layer keeps less than before.
struct Step {
  size_t layer = 0;
  spec::Recompute to = spec::Recompute::kNone;
  int64_t freed = 0;
  double seconds = 0.0;
};

/// What selective recomputation makes again passes over values a few times; it has no products.
constexpr double kSelectiveShare = 0.5;  // of a layer's elementwise work

class Chooser {
 public:
  Chooser(const spec::LayerTable& table, const spec::RunFile& file,
          const std::vector<spec::BatchShape>& shapes)
      : table_(table), file_(file), shapes_(shapes), state_(state_memory(table, file).training()) {
    CHILIAD_CHECK(!shapes.empty());
    for (const auto& shape : shapes_) timelines_.emplace_back(table, file, shape);
  }

  RecomputeChoice choose() {
    if (file_.parallel.recompute != "auto") return choice_of(uniform_modes(table_, file_.parallel));
    const int64_t budget = file_.parallel.memory_budget;
    RecomputeModes modes(table_.layers.size(), spec::Recompute::kNone);
    int64_t least = peak(modes);
    std::vector<std::pair<Step, spec::Recompute>> taken;  // with what was before
    for (const Step& step : steps()) {
      if (least <= budget) break;
      taken.emplace_back(step, modes[step.layer]);
      modes[step.layer] = step.to;
      least = std::min(least, peak(modes));
    }
    if (least > budget) refuse(least);
    std::stable_sort(taken.begin(), taken.end(),
                     [](const auto& a, const auto& b) { return a.first.seconds > b.first.seconds; });
    for (const auto& [step, before] : taken) {
      if (modes[step.layer] != step.to) continue;
      modes[step.layer] = before;
      if (peak(modes) > budget) modes[step.layer] = step.to;
    }
    return choice_of(std::move(modes));
  }

 private:
  [[nodiscard]] int64_t peak(const RecomputeModes& modes) const {
    int64_t most = 0;
    for (const auto& timeline : timelines_) most = std::max(most, timeline.run(modes).peak);
    return state_ + most;
  }

  /// By bytes freed a second; of the micro-batch whose layers keep most.
  [[nodiscard]] std::vector<Step> steps() const {
    const size_t at = largest(RecomputeModes(table_.layers.size(), spec::Recompute::kNone));
    const auto& timeline = timelines_[at];
    const auto rates = spec::rates_of(file_.parallel);
    std::vector<Step> steps;
    for (size_t i = timeline.first_trained(); i + 1 < timeline.num_layers(); ++i) {
      const auto& memory = timeline.layer(i);
      const spec::Work work = table_.layers[i].forward(shapes_[at]);
      spec::Work cheap;
      cheap.elementwise = kSelectiveShare * work.elementwise;
      const double some = rates.seconds(cheap);
      const double all = rates.seconds(work);
      const Step first{i, spec::Recompute::kSelective, memory.none.kept - memory.selective.kept, some};
      const Step second{i, spec::Recompute::kLayers, memory.selective.kept, all - some};
      const Step both{i, spec::Recompute::kLayers, memory.none.kept, all};
      if (first.freed > 0 && is_better(first, second)) {
        steps.push_back(first);
        steps.push_back(second);
      } else if (both.freed > 0) {
        steps.push_back(both);
      }
    }
    std::stable_sort(steps.begin(), steps.end(), is_better);
    return steps;
  }

  /// Frees more a second.
  static bool is_better(const Step& a, const Step& b) {
    return static_cast<double>(a.freed) * b.seconds > static_cast<double>(b.freed) * a.seconds;
  }

  [[nodiscard]] size_t largest(const RecomputeModes& modes) const {
    size_t at = 0;
    int64_t most = -1;
    for (size_t i = 0; i < timelines_.size(); ++i) {
      const int64_t peak = timelines_[i].run(modes).peak;
      if (peak > most) at = i;
      most = std::max(most, peak);
    }
    return at;
  }

  [[nodiscard]] RecomputeChoice choice_of(RecomputeModes modes) const {
    RecomputeChoice choice;
    const size_t at = largest(modes);
    choice.activations = timelines_[at].run(modes);
    choice.state = state_;
    double again = 0.0;
    for (size_t i = timelines_[at].first_trained(); i < modes.size(); ++i) {
      if (modes[i] == spec::Recompute::kLayers) again += table_.layers[i].forward(shapes_[at]).flops();
    }
    choice.extra_flops = again / table_.step_work(shapes_[at]).flops();
    choice.modes = std::move(modes);
    return choice;
  }

  [[noreturn]] void refuse(int64_t least) const {
    throw InvalidInput(
        "parallel.memory_budget",
        fmt::format(
            "expected at least {}MiB ({} of state, {} of activations with all layers recomputed), got {}. "
            "Raise it, lower {}, or raise dp_shard or tp",
            (least + kMiB - 1) / kMiB, format_bytes(state_), format_bytes(least - state_),
            format_bytes(file_.parallel.memory_budget),
            file_.data.mode == "pack" ? "data.micro_batch_tokens" : "data.micro_batch_items"));
  }

  const spec::LayerTable& table_;
  const spec::RunFile& file_;
  const std::vector<spec::BatchShape>& shapes_;
  int64_t state_;
  std::vector<detail::Timeline> timelines_;
};

}  // namespace

std::string RecomputeChoice::to_string() const {
  constexpr std::array<const char*, 3> kNames{"none", "selective", "layers"};
  std::array<int64_t, 3> counts{};
  for (const auto mode : modes) ++counts[static_cast<size_t>(mode)];
  std::vector<std::string> parts;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (counts[i] > 0) parts.push_back(fmt::format("{} {}", counts[i], kNames[i]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

namespace {

/// The modes of the run file where activations cannot be predicted.
RecomputeChoice unpredicted(const spec::LayerTable& table, const spec::RunFile& file) {
  if (file.parallel.recompute == "auto") {
    throw InvalidInput("parallel.recompute",
                       fmt::format("expected none, selective or layers for family {}, whose memory is not "
                                   "predicted yet, got auto. Choose one",
                                   file.model.family));
  }
  RecomputeChoice choice;
  choice.modes = uniform_modes(table, file.parallel);
  choice.known = false;
  choice.state = state_memory(table, file).training();
  return choice;
}

}  // namespace

RecomputeChoice choose_recompute(const spec::LayerTable& table, const spec::RunFile& file,
                                 const std::vector<spec::BatchShape>& shapes) {
  if (!std::all_of(table.layers.begin(), table.layers.end(), detail::has_tape))
    return unpredicted(table, file);
  return Chooser(table, file, shapes).choose();
}

}  // namespace chiliad::planner
