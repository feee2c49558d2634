#include "chiliad/checkpoint/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/extension.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/weights/configs/autoencoder.h"
#include "chiliad/weights/configs/diffusion.h"
#include "chiliad/weights/configs/language.h"
#include "chiliad/weights/configs/scheduler.h"
#include "chiliad/weights/key_tables/model_keys.h"
#include "chiliad/weights/safetensors.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;
using Tensor = Checkpoint::Tensor;

constexpr int64_t kChunkValues = 4 << 20;
constexpr int64_t kMostTokenizerBytes = 256 << 20;

/// Where a tensor's values are, and the name that it gets.
struct Exported {
  const Tensor* tensor;
  std::string name;
};

std::vector<Exported> tensors_to_export(const Checkpoint& checkpoint, const spec::ModelOptions& model,
                                        bool average) {
  std::vector<Exported> list;
  bool has_average = false;
  for (const auto& tensor : checkpoint.tensors()) {
    if (tensor.section != "model") continue;
    const Tensor* better = average ? checkpoint.find("ema", tensor.name) : nullptr;
    has_average = has_average || better != nullptr;
    for (auto& key : weights::published_keys_of(model, tensor.name))
      list.push_back({better != nullptr ? better : &tensor, std::move(key)});
  }
  if (average && !has_average) {
    throw InvalidInput(checkpoint.path().string(),
                       "has no moving average (optimizer.ema is 0). Leave --average out");
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

/// To nearest, ties to even; what is no number stays so.
uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

class Writer {
 public:
  Writer(const Checkpoint& checkpoint, const ExportOptions& options,
         const std::function<void(int64_t, int64_t)>& progress, int64_t total)
      : checkpoint_(checkpoint), options_(options), progress_(progress), total_(total) {}

  void write_file(const fs::path& path, std::span<const Exported> tensors) {
    std::vector<weights::TensorSpec> specs;
    for (const auto& one : tensors) specs.push_back({one.name, options_.dtype, one.tensor->shape});
    auto file = io::File::create(path);
    file.write(weights::plan_safetensors(specs, {{"format", "pt"}}).header);
    for (const auto& one : tensors) write_tensor(file, *one.tensor);
    file.sync();
    file.close();
  }

 private:
  /// Some rows at a time; a row of any size at once.
  void write_tensor(io::File& file, const Tensor& tensor) {
    const bool flat = tensor.shape.rank() == 0;
    const int64_t rows = flat ? 1 : tensor.shape[0];
    const int64_t row_values = rows == 0 ? 0 : tensor.shape.count() / rows;
    const int64_t step = std::max<int64_t>(1, kChunkValues / std::max<int64_t>(1, row_values));
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = std::min(step, rows - row);
      const Box box = flat ? Box::whole(tensor.shape) : Box::rows(tensor.shape, row, count);
      values_.resize(static_cast<size_t>(count * row_values));
      checkpoint_.read(tensor, box, std::as_writable_bytes(std::span(values_)));
      write_values(file);
    }
  }
  void write_values(io::File& file) {
    if (options_.dtype == DType::kF32) {
      file.write(std::as_bytes(std::span(values_)));
    } else {
      narrow_.resize(values_.size());
      std::transform(values_.begin(), values_.end(), narrow_.begin(), to_bf16);
      file.write(std::as_bytes(std::span(narrow_)));
    }
    done_ += static_cast<int64_t>(values_.size()) * dtype_bytes(options_.dtype);
    progress_(done_, total_);
  }

  const Checkpoint& checkpoint_;
  const ExportOptions& options_;
  const std::function<void(int64_t, int64_t)>& progress_;
  int64_t total_;
  int64_t done_ = 0;
  std::vector<float> values_;
  std::vector<uint16_t> narrow_;
};

/// Ends of files in the list of tensors: as many in each as fit.
std::vector<size_t> cut_into_files(std::span<const Exported> tensors, const ExportOptions& options) {
  std::vector<size_t> ends;
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t more = tensors[i].tensor->shape.count() * dtype_bytes(options.dtype);
    if (bytes > 0 && bytes + more > options.file_bytes) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += more;
  }
  ends.push_back(tensors.size());
  return ends;
}

std::string autoencoder_config(const spec::RunFile& run, const ExportOptions& options) {
  auto autoencoder = spec::autoencoder_options(run.model);
  autoencoder.scaling_factor = options.latent_scale.value_or(autoencoder.scaling_factor);
  autoencoder.shift_factor = options.latent_shift;
  return weights::write_autoencoder_config(autoencoder);
}

std::string config_json(const spec::RunFile& run, const ExportOptions& options) {
  using Json = nlohmann::ordered_json;
  if (run.model.extension)  // no library has a class for it
    return json_text(Json{{"model_type", "chiliad_" + run.model.extension->name}, {"base", run.model.family}},
                     2) +
           "\n";
  // Classes of diffusers take no dtype.
  if (spec::is_latent_diffusion(run.model))
    return weights::write_diffusion_config(spec::diffusion_options(run.model));
  if (spec::is_autoencoder(run.model)) return autoencoder_config(run, options);
  Json config = spec::is_language_model(run.model)
                    ? parse_json<Json>(weights::language_config_json(run.model))
                    : Json{{"model_type", "chiliad_" + run.model.family},
                           {"width", run.model.width},
                           {"depth", run.model.depth},
                           {"heads", run.model.heads},
                           {"patch", run.model.patch},
                           {"mlp_ratio", run.model.mlp_ratio},
                           {"text_layers", run.model.text_layers},
                           {"text_max_tokens", run.model.text_max_tokens}};
  config["torch_dtype"] = options.dtype == DType::kF32 ? "float32" : "bfloat16";
  return json_text(config, 2) + "\n";
}

/// tokenizer.json and what lies beside it under the usual names. Returns whether it was there.
bool copy_tokenizer(const fs::path& source, const fs::path& folder) {
  if (!fs::is_regular_file(source)) return false;
  const auto copy = [&](const fs::path& from, const char* name) {
    if (fs::is_regular_file(from)) io::write_atomic(folder / name, io::read_text(from, kMostTokenizerBytes));
  };
  copy(source, "tokenizer.json");
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
    copy(source.parent_path() / name, name);
  return true;
}

/// Without a slash at its end. Throws InvalidInput unless something can be made there.
fs::path target_folder(const fs::path& given) {
  const fs::path normal = given.lexically_normal();
  fs::path target = normal.has_filename() ? normal : normal.parent_path();
  if (target.empty()) throw InvalidInput("--to", "expected the name of a folder, got nothing. Name one");
  if (fs::exists(fs::symlink_status(target))) {
    throw InvalidInput(given.string(),
                       "expected a folder that is not there yet, got one that is. Choose "
                       "another name, or remove it");
  }
  return target;
}

/// A new folder beside the target, this export's alone.
fs::path make_partial(const fs::path& target) {
  if (target.has_parent_path()) io::make_folders(target.parent_path());
  std::string name = target.string() + ".partial-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    throw Unavailable(target.string(),
                      fmt::format("making a folder beside it failed: {}", std::strerror(errno)));
  fs::permissions(name, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                            fs::perms::others_read | fs::perms::others_exec);
  return name;
}

/// Diffusers and transformers look for different names.
const char* file_stem(const spec::ModelOptions& model) {
  return spec::is_latent_diffusion(model) || spec::is_autoencoder(model) ? "diffusion_pytorch_model"
                                                                         : "model";
}

ExportReport write_files(const Checkpoint& checkpoint, const spec::ModelOptions& model,
                         const ExportOptions& options, const fs::path& folder,
                         const std::function<void(int64_t, int64_t)>& progress) {
  const auto tensors = tensors_to_export(checkpoint, model, options.average);
  const std::string stem = file_stem(model);
  const auto ends = cut_into_files(tensors, options);
  ExportReport report;
  report.num_tensors = std::ssize(tensors);
  report.num_files = static_cast<int>(ends.size());
  for (const auto& one : tensors) report.num_bytes += one.tensor->shape.count() * dtype_bytes(options.dtype);
  Writer writer(checkpoint, options, progress, report.num_bytes);
  nlohmann::ordered_json index{{"metadata", {{"total_size", report.num_bytes}}},
                               {"weight_map", nlohmann::ordered_json::object()}};
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const std::string name = ends.size() == 1
                                 ? stem + ".safetensors"
                                 : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, ends.size());
    writer.write_file(folder / name, std::span(tensors).subspan(begin, ends[i] - begin));
    for (; begin < ends[i]; ++begin) index["weight_map"][tensors[begin].name] = name;
  }
  if (ends.size() > 1)
    io::write_atomic(folder / (stem + ".safetensors.index.json"), json_text(index, 2) + "\n");
  return report;
}

}  // namespace

ExportReport export_weights(const Checkpoint& checkpoint, const ExportOptions& options,
                            const fs::path& folder, const std::function<void(int64_t, int64_t)>& progress) {
  CHILIAD_CHECK(options.dtype == DType::kF32 || options.dtype == DType::kBF16);
  const fs::path target = target_folder(folder);
  const auto run =
      spec::parse_run_file(checkpoint.config(), (checkpoint.path() / "config").string(), "run", {});
  if (options.latent_scale.has_value() && !spec::is_autoencoder(run.model))
    throw InvalidInput("--latent-scale",
                       fmt::format("belongs to autoencoders: expected nothing for family {}, "
                                   "got {}. Leave it out",
                                   run.model.family, *options.latent_scale));
  const fs::path partial = make_partial(target);
  try {
    ExportReport report = write_files(checkpoint, run.model, options, partial, progress);
    io::write_atomic(partial / "config.json", config_json(run, options));
    const auto scheduler = weights::write_scheduler_config(run.objective, run.model.learned_variance);
    if (spec::is_latent_diffusion(run.model) && scheduler.has_value())
      io::write_atomic(partial / "scheduler_config.json", *scheduler);
    const fs::path tokenizer = run.data.tokenizer;
    if (!tokenizer.empty() && !copy_tokenizer(tokenizer, partial)) report.missing_tokenizer = tokenizer;
    io::sync_folder(partial);
    io::rename_path(partial, target);
    return report;
  } catch (...) {
    io::remove_tree(partial);
    throw;
  }
}

}  // namespace chiliad::checkpoint
