#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/checkpoint/export.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/observe/terminal_progress.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string checkpoint;
  std::string to;
  std::string dtype = "fp32";
  bool average = false;
  int64_t file_bytes = 5'000'000'000;
  std::optional<double> latent_scale;
  double latent_shift = 0.0;
  bool quiet = false;
  bool json = false;
};

int run(const Arguments& arguments) {
  const auto checkpoint = checkpoint::open_newest(arguments.checkpoint);
  checkpoint::ExportOptions options;
  options.dtype = arguments.dtype == "bf16" ? DType::kBF16 : DType::kF32;
  options.average = arguments.average;
  options.file_bytes = arguments.file_bytes;
  options.latent_scale = arguments.latent_scale;
  options.latent_shift = arguments.latent_shift;
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(arguments.quiet, STDERR_FILENO),
                                     clock, {.label = "exporting", .bytes = true});
  const auto report =
      checkpoint::export_weights(checkpoint, options, arguments.to,
                                 [&](int64_t done, int64_t total) { progress.update(done, total, ""); });
  progress.finish();
  if (arguments.json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"checkpoint", checkpoint.path().string()},
                                                        {"folder", arguments.to},
                                                        {"tensors", report.num_tensors},
                                                        {"bytes", report.num_bytes},
                                                        {"files", report.num_files}}));
  } else {
    fmt::print("{}: {} tensors of step {}, {} in {} file{}\n", arguments.to, report.num_tensors,
               checkpoint.step(), format_bytes(report.num_bytes), report.num_files,
               report.num_files == 1 ? "" : "s");
    if (!report.missing_tokenizer.empty())
      fmt::print("The run's tokenizer is not at {} any more: copy it into the folder\n",
                 report.missing_tokenizer.string());
  }
  return 0;
}

}  // namespace

void add_ckpt_export(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("export", "Writes the model of a checkpoint in the Hugging Face layout");
  verb.option("CKPT", arguments->checkpoint, "A checkpoint, or a run directory: its newest good one")
      .required();
  verb.option("--to", arguments->to, "Folder to make").required();
  verb.option("--dtype", arguments->dtype, "Type of the values").one_of({"fp32", "bf16"}).show_default();
  verb.flag("--average", arguments->average, "The moving average (optimizer.ema) in place of the weights");
  verb.option("--file-bytes", arguments->file_bytes, "Most bytes of one file; more make an index")
      .bytes()
      .within(int64_t{1}, int64_t{1} << 50)
      .show_default();
  const Option scale =
      verb.option("--latent-scale", arguments->latent_scale,
                  "Of autoencoders, for their config.json: models see (latent - shift) * scale; "
                  "`chiliad encode` says which at its end; default 1")
          .positive();
  verb.option("--latent-shift", arguments->latent_shift, "See --latent-scale").within(-1e6, 1e6).needs(scale);
  verb.flag("--quiet", arguments->quiet, "No progress");
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.footer("Example: chiliad ckpt export runs/text --to text-model --dtype bf16");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
