#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::cli {
namespace {

using checkpoint::Checkpoint;

constexpr int64_t kChunkValues = 4 << 20;
constexpr int kDifferent = 1;

struct Arguments {
  std::string a;
  std::string b;
  int64_t most_lines = 20;
  bool json = false;
};

/// How far two tensors of one shape are apart.
struct Distance {
  double largest = 0.0;             ///< difference, of values that are numbers in both
  double magnitude = 0.0;           ///< largest value of both
  int64_t no_numbers_in_first = 0;  ///< NaN and infinities
  int64_t no_numbers_in_second = 0;
};

/// How one tensor differs.
struct Finding {
  std::string name;  ///< section/name
  std::string what;  ///< "values", or what one of them lacks
  Distance distance;
};

std::vector<float> read_rows(const Checkpoint& from, const Checkpoint::Tensor& tensor, const Box& box) {
  std::vector<float> values(static_cast<size_t>(box.count()));
  from.read(tensor, box, std::as_writable_bytes(std::span(values)));
  return values;
}

Distance distance(const Checkpoint& a, const Checkpoint& b, const Checkpoint::Tensor& x,
                  const Checkpoint::Tensor& y) {
  Distance found;
  const int64_t rows = x.shape.rank() == 0 ? 1 : x.shape[0];
  const int64_t step =
      std::max<int64_t>(1, kChunkValues / std::max<int64_t>(1, x.shape.count() / std::max<int64_t>(1, rows)));
  for (int64_t row = 0; row < rows; row += step) {
    const Box box =
        x.shape.rank() == 0 ? Box::whole(x.shape) : Box::rows(x.shape, row, std::min(step, rows - row));
    const auto first = read_rows(a, x, box);
    const auto second = read_rows(b, y, box);
    for (size_t i = 0; i < first.size(); ++i) {
      const double apart = std::abs(static_cast<double>(first[i]) - static_cast<double>(second[i]));
      if (std::isfinite(apart)) found.largest = std::max(found.largest, apart);
      for (const float value : {first[i], second[i]})
        found.magnitude = std::max(found.magnitude, std::abs(static_cast<double>(value)));
      found.no_numbers_in_first += std::isfinite(first[i]) ? 0 : 1;
      found.no_numbers_in_second += std::isfinite(second[i]) ? 0 : 1;
    }
  }
  return found;
}

std::vector<Finding> compare(const Checkpoint& a, const Checkpoint& b) {
  std::vector<Finding> findings;
  for (const auto& x : a.tensors()) {
    const std::string name = x.section + "/" + x.name;
    const auto* y = b.find(x.section, x.name);
    if (y == nullptr) {
      findings.push_back({name, "only in the first", {}});
    } else if (y->shape != x.shape || y->dtype != x.dtype) {
      findings.push_back({name,
                          fmt::format("{} {} and {} {}", dtype_name(x.dtype), x.shape.to_string(),
                                      dtype_name(y->dtype), y->shape.to_string()),
                          {}});
    } else if (x.digest != y->digest) {
      if (x.dtype != DType::kF32) {
        findings.push_back({name, "values", {}});
        continue;
      }
      findings.push_back({name, "values", distance(a, b, x, *y)});
    }
  }
  for (const auto& y : b.tensors()) {
    if (a.find(y.section, y.name) == nullptr)
      findings.push_back({y.section + "/" + y.name, "only in the second", {}});
  }
  return findings;
}

/// Of both, each name once.
int64_t num_tensors(const Checkpoint& a, const Checkpoint& b) {
  return std::ssize(a.tensors()) +
         std::count_if(b.tensors().begin(), b.tensors().end(),
                       [&](const auto& tensor) { return a.find(tensor.section, tensor.name) == nullptr; });
}

spec::RunFile config_of(const Checkpoint& from) {
  return spec::parse_run_file(from.config(), from.path().string(), "run", {});
}

void print_text(const Arguments& arguments, const Checkpoint& a, const Checkpoint& b,
                const std::vector<Finding>& findings, const std::vector<spec::Difference>& options) {
  fmt::print("step {} and step {}: {} of {} tensors differ\n", a.step(), b.step(), findings.size(),
             num_tensors(a, b));
  int64_t lines = 0;
  for (const auto& finding : findings) {
    if (++lines > arguments.most_lines) {
      fmt::print("  and {} more (--lines N shows more)\n", std::ssize(findings) - arguments.most_lines);
      break;
    }
    if (finding.what == "values") {
      const Distance& apart = finding.distance;
      fmt::print("  {}: largest difference {:.3g}, largest value {:.3g}", finding.name, apart.largest,
                 apart.magnitude);
      if (apart.no_numbers_in_first + apart.no_numbers_in_second > 0) {
        fmt::print("; NaN or infinite: {} values and {} values", apart.no_numbers_in_first,
                   apart.no_numbers_in_second);
      }
      fmt::print("\n");
    } else {
      fmt::print("  {}: {}\n", finding.name, finding.what);
    }
  }
  for (const auto& option : options)
    fmt::print("  {}: {} and {}\n", option.key, option.old_value, option.new_value);
}

int run(const Arguments& arguments) {
  const auto a = checkpoint::open_newest(arguments.a);
  const auto b = checkpoint::open_newest(arguments.b);
  const auto findings = compare(a, b);
  const auto options = spec::compare(config_of(a), config_of(b));
  if (arguments.json) {
    auto page = nlohmann::ordered_json{{"steps", {a.step(), b.step()}},
                                       {"tensors", nlohmann::ordered_json::array()},
                                       {"options", nlohmann::ordered_json::object()}};
    for (const auto& finding : findings) {
      page["tensors"].push_back(
          {{"name", finding.name},
           {"what", finding.what},
           {"largest", finding.distance.largest},
           {"magnitude", finding.distance.magnitude},
           {"not_finite", {finding.distance.no_numbers_in_first, finding.distance.no_numbers_in_second}}});
    }
    for (const auto& option : options) page["options"][option.key] = {option.old_value, option.new_value};
    fmt::print("{}\n", page.dump());
  } else {
    print_text(arguments, a, b, findings, options);
  }
  return findings.empty() ? 0 : kDifferent;
}

}  // namespace

void add_ckpt_diff(CLI::App& parent, Action& action) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  auto* verb = parent.add_subcommand(
      "diff", "Compares two checkpoints: tensors by digest, then values, and run files");
  verb->add_option("A", arguments->a, "A checkpoint, or a run directory: its newest good one")->required();
  verb->add_option("B", arguments->b, "Another")->required();
  verb->add_option("--lines", arguments->most_lines, "Most tensors that are listed")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "Prints the result as one JSON object");
  verb->footer("Example: chiliad ckpt diff runs/a runs/b\nExit code 1 where a tensor differs.");
  verb->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace chiliad::cli
