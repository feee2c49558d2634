#include "chiliad/train/verify_layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/train/mesh_run.h"

namespace chiliad::train {
namespace {

constexpr int64_t kMaxRanks = 64;
// fp32 sums of some hundred terms in another order are a few units of 6e-8 of the largest apart. Losses and
// norms of later steps have the differences that grew through the optimizer.
constexpr double kGradientBound = 2e-6;
constexpr double kLossBound = 1e-5;
constexpr double kNormBound = 2e-5;

LayoutCheck compare_items(const MeshRun& want, const MeshRun& got) {
  LayoutCheck check{"items (steps that differ)", 0.0, 0.0, ""};
  for (size_t step = 0; step < want.items.size(); ++step) {
    if (want.items[step] == got.items[step]) continue;
    if (check.where.empty()) check.where = fmt::format("step {}", step + 1);
    check.measured += 1.0;
  }
  return check;
}

/// The largest relative difference of a number of each step.
LayoutCheck compare_series(const char* what, double bound, std::span<const double> want,
                           std::span<const double> got) {
  LayoutCheck check{what, 0.0, bound, ""};
  for (size_t step = 0; step < want.size(); ++step) {
    if (want[step] == got[step]) continue;
    double error = std::abs(want[step] - got[step]) / std::abs(want[step]);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error <= check.measured) continue;
    check.measured = error;
    check.where = fmt::format("step {}", step + 1);
  }
  return check;
}

template <typename Value>
int64_t count_unequal_bits(std::span<const Value> a, std::span<const Value> b) {
  CHILIAD_CHECK_EQ(a.size(), b.size());
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(Value)) != 0 ? 1 : 0;
  return count;
}

LayoutCheck compare_bits(const MeshRun& first, const MeshRun& second) {
  LayoutCheck check{"a second run (values that differ)", 0.0, 0.0, ""};
  const auto count = [&](int64_t unequal, const std::string& where) {
    if (unequal > 0 && check.where.empty()) check.where = where;
    check.measured += static_cast<double>(unequal);
  };
  for (const auto& [name, values] : first.gradients) {
    count(count_unequal_bits<float>(values, second.gradients.at(name)), name);
  }
  count(count_unequal_bits<double>(first.losses, second.losses), "losses");
  count(count_unequal_bits<double>(first.grad_norms, second.grad_norms), "gradient norms");
  return check;
}

int64_t count_without_gradient(const MeshRun& run) {
  return std::count_if(run.gradients.begin(), run.gradients.end(), [](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(), [](float value) { return value == 0.0F; });
  });
}

parallel::MeshShape checked_shape(const spec::RunFile& file, int64_t num_steps) {
  const auto& layout = file.parallel;
  if (layout.nproc > kMaxRanks) {
    throw InvalidInput(
        "parallel.nproc",
        fmt::format("expected at most {} ranks, for all run in one process here, got {}. Verify a smaller "
                    "layout of the same kind with --nproc and --set",
                    kMaxRanks, layout.nproc));
  }
  if (num_steps > file.run.steps) {
    throw InvalidInput("--steps", fmt::format("expected at most run.steps = {}, got {}. Give --steps {}",
                                              file.run.steps, num_steps, file.run.steps));
  }
  parallel::MeshShape shape;
  shape.dp_replicate = static_cast<int>(layout.dp_replicate());
  shape.dp_shard = static_cast<int>(layout.dp_shard);
  shape.tp = static_cast<int>(layout.tp);
  return shape;
}

}  // namespace

bool LayoutReport::ok() const {
  return std::all_of(checks.begin(), checks.end(), [](const auto& check) { return check.ok(); });
}

std::string LayoutReport::to_table() const {
  std::string text = fmt::format(
      "{}, against one rank: {} steps in fp32\n{} trained parameters, {} of them without a gradient in step "
      "1\n\n",
      shape.to_string(), num_steps, num_parameters, num_without_gradient);
  text += fmt::format("{:<38} {:>9}  {:>7}  {:<3}  {}\n", "what", "measured", "bound", "ok", "where");
  std::string wrong;
  for (const auto& check : checks) {
    text += fmt::format("{:<38} {:>9.2g}  {:>7.2g}  {:<3}{}\n", check.what, check.measured, check.bound,
                        check.ok() ? "yes" : "NO", check.where.empty() ? "" : "  " + check.where);
    if (check.ok()) continue;
    wrong += fmt::format("{}{} at {}", wrong.empty() ? "" : "; ", check.what, check.where);
  }
  return text + "\n" +
         (ok() ? "The layout gives the numbers of one device"
               : "The layout does not give the numbers of one device: " + wrong);
}

std::string LayoutReport::to_json() const {
  auto list = nlohmann::ordered_json::array();
  for (const auto& check : checks) {
    list.push_back({{"what", check.what},
                    {"measured", check.measured},  // null where it is infinite
                    {"bound", check.bound},
                    {"ok", check.ok()},
                    {"where", check.where}});
  }
  const nlohmann::ordered_json page{
      {"ok", ok()},
      {"steps", num_steps},
      {"ranks", shape.size()},
      {"layout", {{"dp_replicate", shape.dp_replicate}, {"dp_shard", shape.dp_shard}, {"tp", shape.tp}}},
      {"parameters", num_parameters},
      {"without_gradient", num_without_gradient},
      {"checks", list}};
  return json_text(page);
}

LayoutReport verify_layout(const spec::RunFile& file, const index::Index& index, int64_t num_steps,
                           const VerifyProgress& progress) {
  LayoutReport report;
  report.shape = checked_shape(file, num_steps);
  report.num_steps = num_steps;
  spec::RunFile exact = file;
  exact.parallel.compute = "fp32";
  int64_t before = 0;
  const auto run = [&](const parallel::MeshShape& shape, const char* name) {
    MeshRunOptions options;
    options.draw_zeros = true;
    options.watch = [&](int64_t done) {
      if (progress) progress(before + done, 3 * num_steps, name);
    };
    auto result = run_mesh(exact, index, shape, num_steps, options);
    before += num_steps;
    return result;
  };
  const auto one = run({}, "one rank");
  const auto layout = run(report.shape, "the layout");
  report.num_parameters = std::ssize(one.gradients);
  report.num_without_gradient = count_without_gradient(one);
  const auto gradients = compare_gradients(one, layout);
  report.checks = {
      compare_items(one, layout),
      {"gradients of step 1 (of the largest)", gradients.error, kGradientBound, gradients.parameter},
      compare_series("losses (relative)", kLossBound, one.losses, layout.losses),
      compare_series("gradient norms (relative)", kNormBound, one.grad_norms, layout.grad_norms)};
  report.checks.push_back(compare_bits(layout, run(report.shape, "the layout again")));
  return report;
}

}  // namespace chiliad::train
