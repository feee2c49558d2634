#include "chiliad/weights/configs/scheduler.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "chiliad/base/json_text.h"
#include "chiliad/weights/detail/config_reader.h"

namespace chiliad::weights {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Names = std::array<std::pair<std::string_view, std::string_view>, 3>;  // ours, theirs

constexpr Names kPredictions{{{"noise", "epsilon"}, {"velocity", "v_prediction"}, {"sample", "sample"}}};
constexpr Names kSchedules{
    {{"linear", "linear"}, {"scaled_linear", "scaled_linear"}, {"cosine", "squaredcos_cap_v2"}}};

std::string theirs_of(const Names& names, std::string_view ours) {
  for (const auto& [own, other] : names) {
    if (own == ours) return std::string(other);
  }
  return std::string(ours);
}
std::string ours_of(const Names& names, const std::string& theirs) {
  for (const auto& [own, other] : names) {
    if (other == theirs) return std::string(own);
  }
  return theirs;
}

Json flow_config(const spec::ObjectiveOptions& objective) {
  Json json{{"_class_name", "FlowMatchEulerDiscreteScheduler"},
            {"num_train_timesteps", 1000},
            {"shift", objective.shift},
            {"use_dynamic_shifting", objective.dynamic_shift}};
  if (!objective.dynamic_shift) return json;
  json["base_image_seq_len"] = 256;  // as objective::DynamicShift
  json["max_image_seq_len"] = 4096;
  json["base_shift"] = 0.5;
  json["max_shift"] = 1.15;
  return json;
}

Json discrete_config(const spec::ObjectiveOptions& objective, bool learned_variance) {
  return Json{{"_class_name", "DDPMScheduler"},
              {"num_train_timesteps", objective.train_steps},
              {"beta_schedule", theirs_of(kSchedules, objective.noise_schedule)},
              {"beta_start", objective.beta_start},
              {"beta_end", objective.beta_end},
              {"prediction_type", theirs_of(kPredictions, objective.prediction)},
              {"rescale_betas_zero_snr", objective.zero_terminal_snr},
              {"timestep_spacing", objective.zero_terminal_snr ? "trailing" : "leading"},
              {"variance_type", learned_variance ? "learned_range" : "fixed_small"},
              {"clip_sample", false}};
}

/// Collects what differs.
class Differences {
 public:
  template <typename Value>
  void add(std::string_view key, const Value& ours, const Value& theirs) {
    if (ours != theirs) lines_.push_back(fmt::format("objective.{} is {}, there {}", key, ours, theirs));
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void compare_flow(detail::ConfigReader& config, const spec::ObjectiveOptions& objective, Differences& found) {
  found.add<std::string>("kind", objective.kind, "flow");
  if (objective.kind != "flow") return;
  const bool dynamic = config.flag("use_dynamic_shifting").value_or(false);
  found.add("dynamic_shift", objective.dynamic_shift, dynamic);
  if (!dynamic && !objective.dynamic_shift)
    found.add("shift", objective.shift, config.positive_number("shift").value_or(1.0));
  found.add<std::string>("prediction", objective.prediction, "velocity");
}

void compare_discrete(detail::ConfigReader& config, const spec::ObjectiveOptions& objective,
                      Differences& found) {
  found.add<std::string>("kind", objective.kind, "ddpm");
  if (objective.kind != "ddpm") return;
  found.add("prediction", objective.prediction,
            ours_of(kPredictions, config.text("prediction_type", "epsilon")));
  const std::string schedule = ours_of(kSchedules, config.text("beta_schedule", "linear"));
  found.add("noise_schedule", objective.noise_schedule, schedule);
  if (schedule != "cosine" && objective.noise_schedule == schedule) {
    found.add("beta_start", objective.beta_start, config.positive_number("beta_start").value_or(1e-4));
    found.add("beta_end", objective.beta_end, config.positive_number("beta_end").value_or(0.02));
  }
  found.add("train_steps", objective.train_steps, config.count("num_train_timesteps").value_or(1000));
  found.add("zero_terminal_snr", objective.zero_terminal_snr,
            config.flag("rescale_betas_zero_snr").value_or(false));
}

/// Schedulers of diffusers that walk the discrete diffusion of DDPM.
bool is_discrete(std::string_view name) {
  constexpr std::array<std::string_view, 9> kKnown{
      "DDPMScheduler",          "DDIMScheduler",
      "PNDMScheduler",          "DPMSolverMultistepScheduler",
      "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler",
      "LMSDiscreteScheduler",   "HeunDiscreteScheduler",
      "UniPCMultistepScheduler"};
  for (const std::string_view known : kKnown) {
    if (known == name) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> write_scheduler_config(const spec::ObjectiveOptions& objective,
                                                  bool learned_variance) {
  if (objective.extension != nullptr) return std::nullopt;
  if (objective.kind == "ddpm") return json_text(discrete_config(objective, learned_variance), 2) + "\n";
  if (objective.kind != "flow" || objective.prediction != "velocity") return std::nullopt;
  return json_text(flow_config(objective), 2) + "\n";
}

fs::path find_scheduler_config(const fs::path& transformer) {
  const fs::path folder = fs::is_directory(transformer) ? transformer : transformer.parent_path();
  for (const fs::path& path :
       {folder / "scheduler_config.json", folder.parent_path() / "scheduler" / "scheduler_config.json"}) {
    if (fs::is_regular_file(path)) return path;
  }
  return {};
}

std::vector<std::string> scheduler_differences(const fs::path& path,
                                               const spec::ObjectiveOptions& objective) {
  if (objective.extension != nullptr) return {};
  const Json json = detail::parse_config(detail::read_config_text(path, "a scheduler"), path.string());
  detail::ConfigReader config(json, path.string());
  const std::string name = config.text("_class_name", "");
  const bool flow = name.starts_with("FlowMatch") || config.text("prediction_type", "") == "flow_prediction";
  Differences found;
  if (flow) {
    compare_flow(config, objective, found);
  } else if (is_discrete(name)) {
    compare_discrete(config, objective, found);
  }
  return found.take();
}

}  // namespace chiliad::weights
