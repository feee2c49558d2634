#include "apps/chiliad/run_setup.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <unistd.h>
#include <ctime>
#include <iostream>
#include <memory>
#include <utility>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/loader/run_options.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/weights/start_weights.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::cli {

void add_overrides(CLI::App& verb, RunArguments& arguments) {
  verb.add_option("--set", arguments.overrides, "section.key=value, over the run file; may be repeated")
      ->expected(1)
      ->take_all();
}

spec::RunFile read_run(const RunArguments& arguments) {
  auto overrides = arguments.overrides;
  if (arguments.nproc > 0) overrides.push_back(fmt::format("parallel.nproc={}", arguments.nproc));
  auto file = spec::read_run_file(arguments.run_file, overrides);
  if (file.run.dir.empty()) {
    file.run.dir =
        (std::filesystem::path("runs") / std::filesystem::path(arguments.run_file).stem()).string();
  }
  return file;
}

std::shared_ptr<const text::DocumentEncoder> open_encoder(const spec::RunFile& file) {
  if (file.data.mode != "pack") return nullptr;
  auto encoder = text::DocumentEncoder::open(file.data.tokenizer, file.data.end_token);
  const int64_t needed = encoder->tokenizer().vocabulary_size();
  if (file.model.vocabulary < needed) {
    throw InvalidInput(
        "model.vocabulary",
        fmt::format("expected at least the {} ids of the tokenizer, got {}. Set it to {} or more", needed,
                    file.model.vocabulary, needed));
  }
  return encoder;
}

std::string check_weights(const spec::RunFile& file) {
  if (file.model.weights.empty()) return "";
  if (!std::filesystem::exists(file.model.weights)) {
    throw InvalidInput("model.weights",
                       fmt::format("expected a folder or file of weights, got {}, which is not "
                                   "there. Paths are from the current folder",
                                   file.model.weights));
  }
  const auto source = weights::WeightSource::open(file.model.weights);
  const bool compared = weights::check_start_weights(source, file.model);
  return fmt::format(
      "{}: {} tensors; {}", source.path().string(), source.tensors().size(),
      compared
          ? "its config.json says what the run file says"
          : "no config.json was compared, so options that fit every tensor are as the run file has them");
}

index::Index open_index(const spec::RunFile& file, const text::DocumentEncoder* encoder, bool quiet) {
  auto index = index::Index::open(file.data.index);
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(quiet, STDERR_FILENO), clock,
                                     {.label = "counting tokens", .bytes = true});
  bool shown = false;
  const auto show = [&](int64_t done, int64_t total) {
    shown = true;
    progress.update(done, total, "");
  };
  if (encoder != nullptr) {
    dataset::build_document_columns(index, *encoder, show);
  } else {
    dataset::build_token_columns(index, file.model.text_max_tokens, show);
  }
  if (shown) progress.finish();
  return index;
}

stepplan::Plan open_plan(const spec::RunFile& file, const index::Index& index,
                         const text::DocumentEncoder* encoder) {
  const Digest tokenizer =
      encoder != nullptr ? encoder->digest() : text::ByteTokenizer(file.model.text_max_tokens).digest();
  return {index, file.data, file.run.seed, stepplan::column_counts(index, tokenizer), tokenizer};
}

std::string now_text() {
  const auto wall = static_cast<std::time_t>(to_seconds(SystemClock().wall()));
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(wall));
}

stepplan::PackOptions pack_options(const spec::RunFile& file, const text::DocumentEncoder* encoder,
                                   int num_ranks) {
  // The packing asks only whether there are documents; nobody loads with these options.
  const std::shared_ptr<const text::DocumentEncoder> borrowed(std::shared_ptr<void>(), encoder);
  return loader::loader_options(file, borrowed, spec::rates_of(file.parallel), 0, num_ranks).pack;
}

}  // namespace chiliad::cli
