#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/stepplan/offline_packs.h"
#include "chiliad/stepplan/pack_rows.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  RunArguments run;
  std::string out;
  int64_t tokens = 0;
};

stepplan::OfflinePacks make(const Arguments& arguments, spec::RunFile file) {
  file.data.packs.clear();
  const auto index = loader::open_index(file.data);
  const auto inputs = loader::open_inputs(file, index);
  make_token_columns(file, index, inputs, arguments.run.quiet);
  const auto plan = open_plan(file, index, inputs, arguments.run.quiet);
  const auto options = loader::pack_options(file, spec::rates_of(file.parallel), 1);
  std::vector<int32_t> bucket_of(static_cast<size_t>(index.num_samples()), -1);
  for (const auto& planned : plan.planned()) bucket_of[static_cast<size_t>(planned.sample)] = planned.bucket;
  const SystemClock clock;
  observe::TerminalProgress bar(std::cerr, observe::progress_style(arguments.run.quiet, 2), clock,
                                {.label = "pack", .unit = "block"});
  stepplan::OfflinePacking packing;
  packing.max_tokens = arguments.tokens > 0 ? arguments.tokens : file.data.micro_batch_tokens;
  packing.window_blocks = file.data.window_blocks;
  packing.positions = [&](int64_t sample) {
    stepplan::Item item;
    item.bucket = bucket_of[static_cast<size_t>(sample)];
    item.num_tokens = plan.longest_tokens(sample);
    return stepplan::row_positions(item, plan.buckets(), options);
  };
  packing.progress = [&](int64_t done, int64_t total) { bar.update(done, total, ""); };
  const Digest tokenizer = inputs.documents == nullptr ? Digest{} : inputs.documents->digest();
  auto packs =
      stepplan::make_packs(plan.samples(), stepplan::block_ends(index),
                           stepplan::packs_identity(index.manifest().digest, tokenizer, file.data), packing);
  bar.finish();
  return packs;
}

int run(const Arguments& arguments) {
  const auto file = read_run(arguments.run);
  if (file.data.mode != "pack")
    throw InvalidInput("data.mode",
                       fmt::format("expected pack for packs, got {}. Change it", file.data.mode));
  if (spec::reads_conversations(file.vision))
    throw InvalidInput("vision.template", fmt::format("expected none for packs, got {}: conversations are "
                                                      "packed step by step. Train without data.packs",
                                                      file.vision.chat_template));
  const auto packs = make(arguments, file);
  const auto bytes = packs.to_bytes();
  io::write_atomic(arguments.out, bytes);
  if (arguments.run.json) {
    const nlohmann::ordered_json json{{"file", arguments.out},
                                      {"digest", packs.digest().hex()},
                                      {"bytes", bytes.size()},
                                      {"packs", packs.num_packs()},
                                      {"samples", packs.num_samples()},
                                      {"windows", packs.group_sizes().size()},
                                      {"max_tokens", packs.max_tokens()},
                                      {"fill", packs.fill()}};
    fmt::print("{}\n", json_text(json, 2));
    return 0;
  }
  fmt::print("{}: {} packs of at most {} positions, {:.1f} % full, of {} samples in {} windows; {} bytes\n",
             arguments.out, packs.num_packs(), packs.max_tokens(), 100.0 * packs.fill(), packs.num_samples(),
             packs.group_sizes().size(), bytes.size());
  fmt::print("data: {{mode: pack, packs: {}, batch: N}} takes N of them a step\n", arguments.out);
  return 0;
}

}  // namespace

void add_data_pack(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("pack", "Packs samples beforehand: a small file of lists, for data.packs");
  verb.option("RUN", arguments->run.run_file, "Run file, of mode pack").required();
  verb.option("--out", arguments->out, "File to write").required();
  verb.option("--tokens", arguments->tokens,
              "Most positions of a pack (default: data.micro_batch_tokens, which must hold one)")
      .within(int64_t{1}, int64_t{1} << 24);
  add_overrides(verb, arguments->run);
  verb.flag("--json", arguments->run.json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->run.quiet, "Shows no progress");
  verb.footer("Example: chiliad data pack run.yaml --out run.packs");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
