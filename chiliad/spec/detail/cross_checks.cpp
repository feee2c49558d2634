#include "chiliad/spec/detail/cross_checks.h"

#include <fmt/core.h>

#include <utility>

namespace chiliad::spec::detail {
namespace {

using Found = std::optional<Conflict>;

Found check_model(const ModelOptions& model) {
  if (model.width % model.heads != 0) {
    return Conflict{"model.width",
                    fmt::format("expected a multiple of model.heads ({}), got {}. Did you mean {}?",
                                model.heads, model.width, (model.width / model.heads + 1) * model.heads)};
  }
  const int64_t head_size = model.width / model.heads;
  if (head_size % 2 != 0) {
    return Conflict{"model.heads",
                    fmt::format("expected an even head size (model.width / model.heads), got {} / {} = "
                                "{}. Change one of them",
                                model.width, model.heads, head_size)};
  }
  return std::nullopt;
}

Found check_multiple(const char* key, int64_t value, int64_t step) {
  if (value % step == 0) return std::nullopt;
  return Conflict{key, fmt::format("expected a multiple of data.bucket_step ({}), got {}. Did you mean {}?",
                                   step, value, (value / step + 1) * step)};
}

Found check_buckets(const DataOptions& data, int64_t patch) {
  if (data.bucket_step % patch != 0) {
    return Conflict{"data.bucket_step",
                    fmt::format("expected a multiple of model.patch ({}), got {}. Did you mean {}?", patch,
                                data.bucket_step, (data.bucket_step / patch + 1) * patch)};
  }
  if (auto conflict = check_multiple("data.bucket_min", data.bucket_min, data.bucket_step)) return conflict;
  if (auto conflict = check_multiple("data.bucket_max", data.bucket_max, data.bucket_step)) return conflict;
  if (data.bucket_min > data.resolution) {
    return Conflict{"data.bucket_min",
                    fmt::format("expected at most data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_min)};
  }
  if (data.bucket_max < data.resolution) {
    return Conflict{"data.bucket_max",
                    fmt::format("expected at least data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_max)};
  }
  return std::nullopt;
}

Found check_documents(const DataOptions& data) {
  const bool pack = data.mode == "pack";
  if (pack && data.micro_batch_tokens < data.sequence_length) {
    return Conflict{"data.micro_batch_tokens",
                    fmt::format("expected at least data.sequence_length ({}), got {}. Did you mean {}?",
                                data.sequence_length, data.micro_batch_tokens, data.sequence_length)};
  }
  for (const auto& [key, value] :
       {std::pair("data.tokenizer", data.tokenizer), {"data.end_token", data.end_token}}) {
    if (pack || value.empty()) continue;
    return Conflict{key,
                    fmt::format("expected nothing where data.mode is bucket (its captions are bytes), got "
                                "'{}'. Set data.mode to pack, or leave it out",
                                value)};
  }
  if (pack && data.tokenizer.empty() && !data.end_token.empty()) {
    return Conflict{"data.end_token",
                    fmt::format("expected nothing for bytes, which have their own, got '{}'. Set "
                                "data.tokenizer, or leave it out",
                                data.end_token)};
  }
  return std::nullopt;
}

}  // namespace

Found find_conflict(const RunFile& file) {
  if (auto conflict = check_model(file.model)) return conflict;
  if (auto conflict = check_documents(file.data)) return conflict;
  if (file.data.mode == "pack") return std::nullopt;
  return check_buckets(file.data, file.model.patch);
}

}  // namespace chiliad::spec::detail
