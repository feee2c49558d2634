#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/chiliad/tensor_side.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
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
  int64_t num_different = 0;  ///< bits
};

/// How one tensor differs.
struct Finding {
  std::string name;
  std::string what;  ///< "values", types that differ, or what one of them lacks
  Distance distance;
};

Distance distance(const TensorSide& a, const TensorSide& b, const TensorSide::Tensor& x,
                  const TensorSide::Tensor& y) {
  Distance found;
  const int64_t rows = x.shape.rank() == 0 ? 1 : x.shape[0];
  const int64_t step =
      std::max<int64_t>(1, kChunkValues / std::max<int64_t>(1, x.shape.count() / std::max<int64_t>(1, rows)));
  for (int64_t row = 0; row < rows; row += step) {
    const Box box =
        x.shape.rank() == 0 ? Box::whole(x.shape) : Box::rows(x.shape, row, std::min(step, rows - row));
    const auto first = a.read(x, box);
    const auto second = b.read(y, box);
    for (size_t i = 0; i < first.size(); ++i) {
      const double apart = std::abs(static_cast<double>(first[i]) - static_cast<double>(second[i]));
      if (std::isfinite(apart)) found.largest = std::max(found.largest, apart);
      for (const float value : {first[i], second[i]})
        found.magnitude = std::max(found.magnitude, std::abs(static_cast<double>(value)));
      found.no_numbers_in_first += std::isfinite(first[i]) ? 0 : 1;
      found.no_numbers_in_second += std::isfinite(second[i]) ? 0 : 1;
      found.num_different += std::bit_cast<uint32_t>(first[i]) == std::bit_cast<uint32_t>(second[i]) ? 0 : 1;
    }
  }
  return found;
}

/// Nothing where they are equal, type and all.
std::optional<Finding> compare(const TensorSide& a, const TensorSide& b, const TensorSide::Tensor& x,
                               const TensorSide::Tensor& y) {
  const bool readable = a.is_comparable(x.dtype) && b.is_comparable(y.dtype);
  if (y.shape != x.shape || (y.dtype != x.dtype && !readable)) {
    return Finding{x.name,
                   fmt::format("{} {} and {} {}", dtype_name(x.dtype), x.shape.to_string(),
                               dtype_name(y.dtype), y.shape.to_string()),
                   {}};
  }
  if (x.digest.has_value() && y.digest.has_value() && x.dtype == y.dtype && x.digest == y.digest)
    return std::nullopt;
  if (!readable) return Finding{x.name, "values", {}};
  const Distance apart = distance(a, b, x, y);
  if (x.dtype != y.dtype)
    return Finding{x.name, fmt::format("{} and {}", dtype_name(x.dtype), dtype_name(y.dtype)), apart};
  if (apart.num_different == 0) return std::nullopt;
  return Finding{x.name, "values", apart};
}

std::vector<Finding> compare(const TensorSide& a, const TensorSide& b) {
  std::vector<Finding> findings;
  for (const auto& x : a.tensors()) {
    const auto* y = b.find(x.name);
    if (y == nullptr) {
      findings.push_back({x.name, "only in the first", {}});
    } else if (auto finding = compare(a, b, x, *y)) {
      findings.push_back(std::move(*finding));
    }
  }
  for (const auto& y : b.tensors()) {
    if (a.find(y.name) == nullptr) findings.push_back({y.name, "only in the second", {}});
  }
  return findings;
}

/// Of both, each name once.
int64_t num_tensors(const TensorSide& a, const TensorSide& b) {
  return std::ssize(a.tensors()) +
         std::count_if(b.tensors().begin(), b.tensors().end(),
                       [&](const auto& tensor) { return a.find(tensor.name) == nullptr; });
}

/// A checkpoint, or published weights.
struct Given {
  std::optional<Checkpoint> checkpoint;
  std::optional<weights::WeightSource> source;

  [[nodiscard]] std::string words() const {
    return checkpoint ? fmt::format("step {}", checkpoint->step()) : source->path().string();
  }
};

/// A folder without checkpoints is one of weights where it has their files.
Given open_given(const std::string& path) {
  const bool file = path.ends_with(".safetensors") || path.ends_with(".json");
  bool weights = file;
  for (const char* stem : {"model", "diffusion_pytorch_model"}) {
    for (const char* suffix : {".safetensors", ".safetensors.index.json"})
      weights =
          weights || std::filesystem::exists(std::filesystem::path(path) / (std::string(stem) + suffix));
  }
  Given given;
  if (weights) {
    given.source = weights::WeightSource::open(path);
  } else {
    given.checkpoint = checkpoint::open_newest(path);
  }
  return given;
}

std::unique_ptr<TensorSide> side_of_given(const Given& given, const Given& other) {
  if (given.checkpoint) return side_of(*given.checkpoint, !other.checkpoint.has_value());
  return other.checkpoint ? side_of(*given.source, *other.checkpoint) : side_of(*given.source);
}

spec::RunFile config_of(const Checkpoint& from) {
  return spec::parse_run_file(from.config(), from.path().string(), "run", {});
}

void print_finding(const Finding& finding) {
  const Distance& apart = finding.distance;
  const bool values = finding.what == "values";
  if (!values && apart.magnitude == 0.0) {
    fmt::print("  {}: {}\n", finding.name, finding.what);
    return;
  }
  fmt::print("  {}: {}largest difference {:.3g}, largest value {:.3g}", finding.name,
             values ? "" : finding.what + "; ", apart.largest, apart.magnitude);
  if (apart.no_numbers_in_first + apart.no_numbers_in_second > 0) {
    fmt::print("; NaN or infinite: {} values and {} values", apart.no_numbers_in_first,
               apart.no_numbers_in_second);
  }
  fmt::print("\n");
}

void print_text(const Arguments& arguments, const std::string& title, const std::vector<Finding>& findings,
                const std::vector<spec::Difference>& options) {
  fmt::print("{}\n", title);
  int64_t lines = 0;
  for (const auto& finding : findings) {
    if (++lines > arguments.most_lines) {
      fmt::print("  and {} more (--lines N shows more)\n", std::ssize(findings) - arguments.most_lines);
      break;
    }
    print_finding(finding);
  }
  for (const auto& option : options)
    fmt::print("  {}: {} and {}\n", option.key, option.old_value, option.new_value);
}

int run(const Arguments& arguments) {
  const Given first = open_given(arguments.a);
  const Given second = open_given(arguments.b);
  const auto a = side_of_given(first, second);
  const auto b = side_of_given(second, first);
  const auto findings = compare(*a, *b);
  const bool both = first.checkpoint && second.checkpoint;
  const auto options = both ? spec::compare(config_of(*first.checkpoint), config_of(*second.checkpoint))
                            : std::vector<spec::Difference>();
  if (arguments.json) {
    auto page = nlohmann::ordered_json{{"steps", nlohmann::ordered_json::array()},
                                       {"tensors", nlohmann::ordered_json::array()},
                                       {"options", nlohmann::ordered_json::object()}};
    for (const Given* given : {&first, &second}) {
      if (given->checkpoint) {
        page["steps"].push_back(given->checkpoint->step());
      } else {
        page["steps"].push_back(nullptr);
      }
    }
    for (const auto& finding : findings) {
      page["tensors"].push_back(
          {{"name", finding.name},
           {"what", finding.what},
           {"largest", finding.distance.largest},
           {"magnitude", finding.distance.magnitude},
           {"not_finite", {finding.distance.no_numbers_in_first, finding.distance.no_numbers_in_second}}});
    }
    for (const auto& option : options) page["options"][option.key] = {option.old_value, option.new_value};
    fmt::print("{}\n", json_text(page));
  } else {
    print_text(arguments,
               fmt::format("{} and {}: {} of {} tensors differ", first.words(), second.words(),
                           findings.size(), num_tensors(*a, *b)),
               findings, options);
  }
  return findings.empty() ? 0 : kDifferent;
}

}  // namespace

void add_ckpt_diff(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add(
      "diff", "Compares checkpoints or published weights: tensors by digest, then values, and run files");
  verb.option("A", arguments->a,
              "A checkpoint, a run directory (its newest good one), or a folder of weights in the "
              "Hugging Face layout")
      .required();
  verb.option("B", arguments->b, "Another").required();
  verb.option("--lines", arguments->most_lines, "Most tensors that are listed")
      .within(int64_t{1}, int64_t{1} << 40)
      .show_default();
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.footer(
      "Example: chiliad ckpt diff runs/a runs/b\nBeside a folder of weights, moments and averages are left "
      "out.\nExit code 1 where a tensor differs.");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
