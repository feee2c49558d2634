#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/chiliad/block_cache.h"
#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/loader/journal_file.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/report/step_page.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  RunArguments run;
  int64_t step = 0;
  int num_ranks = 0;
  int64_t max_items = 512;
  std::string out;
};

/// What the run agreed to leave out so far.
stepplan::Journal read_journal(const spec::RunFile& file) {
  const auto path = supervise::RunDirectory(file.run.dir).journal();
  if (!io::stat_file(path).has_value()) return {};
  return loader::read_journal(path);
}

report::StepPageOptions page_options(const Arguments& arguments, const spec::RunFile& file,
                                     const loader::RunInputs& inputs) {
  report::StepPageOptions options;
  options.title = file.run.name;
  options.made_at = now_text();
  options.max_items = arguments.max_items;
  if (inputs.conversations != nullptr) {
    options.decode = [encoder = inputs.conversations->encoder](std::span<const int32_t> ids) {
      return encoder->tokenizer().decode(ids, false);
    };
  } else if (inputs.documents != nullptr) {
    options.decode = [encoder = inputs.documents](std::span<const int32_t> ids) {
      return encoder->tokenizer().decode(ids, false);
    };
  } else {
    options.decode = [](std::span<const int32_t> ids) { return text::ByteTokenizer::decode(ids); };
    options.caption_dropout = file.objective.caption_dropout;
  }
  return options;
}

/// What the features of an item were made of.
report::Original original(loader::ItemLoader& items, const stepplan::Item& item, stepplan::Bucket bucket) {
  report::Original made;
  made.pixels = HostArray(DType::kU8, Shape{bucket.height, bucket.width, 3});
  if (item.weight == 0.0F) return made;
  static_cast<void>(items.load_alone(item, bucket, made.pixels.bytes()));
  if (item.caption >= 0)
    made.caption = items.read_caption(item.sample, static_cast<uint32_t>(item.caption)).text;
  return made;
}

int run(const Arguments& arguments) {
  const auto file = read_run(arguments.run);
  const auto index = loader::open_index(file.data);
  const auto cache = join_block_cache(file, index);
  const auto inputs = loader::open_inputs(file, index);
  make_token_columns(file, index, inputs, arguments.run.quiet);
  const auto plan = open_plan(file, index, inputs, arguments.run.quiet);
  const auto journal = read_journal(file);
  const int num_ranks = arguments.num_ranks > 0 ? arguments.num_ranks : static_cast<int>(file.parallel.dp());
  std::vector<loader::RankStep> ranks;
  int64_t num_bad = 0;
  for (int rank = 0; rank < num_ranks; ++rank) {
    auto options = loader::loader_options(file, inputs, spec::rates_of(file.parallel), rank, num_ranks);
    options.cache_bytes = 0;
    loader::Loader loader(index, plan, journal, arguments.step, arguments.step + 1, std::move(options));
    ranks.push_back(loader.next());
    num_bad += static_cast<int64_t>(ranks.back().verdicts.size());
  }
  const std::string out =
      arguments.out.empty() ? fmt::format("{}-step-{}.html", file.run.name, arguments.step) : arguments.out;
  auto options = page_options(arguments, file, inputs);
  loader::ItemLoaderOptions originals;
  originals.pictures = loader::picture_options(file.data);
  originals.source = inputs.source;
  loader::ItemLoader items(index, originals);
  if (inputs.columns.latents != nullptr)
    options.original = [&](const auto& item, auto bucket) { return original(items, item, bucket); };
  io::write_atomic(out, report::step_page(index, ranks, options));
  if (arguments.run.json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"out", out},
                                                        {"step", arguments.step},
                                                        {"epoch", ranks.front().epoch},
                                                        {"ranks", num_ranks},
                                                        {"items", ranks.front().num_items},
                                                        {"digest", ranks.front().digest.hex()},
                                                        {"bad", num_bad}}));
  } else {
    fmt::print("{}: {} items of step {} on {} ranks{}\n", out, ranks.front().num_items, arguments.step,
               num_ranks, num_bad > 0 ? fmt::format(", {} found bad", num_bad) : "");
  }
  return 0;
}

}  // namespace

void add_data_show(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add(
      "show", "Writes an HTML page of exactly what the model will see in a step: crops, captions, tokens");
  verb.option("RUN", arguments->run.run_file, "Run file").required();
  verb.option("--step", arguments->step, "Number of the step in the plan, from 0")
      .required()
      .within(int64_t{0}, int64_t{1'000'000'000});
  verb.option("--ranks", arguments->num_ranks, "Data-parallel ranks (default: those of section parallel)")
      .within(1, 65536);
  verb.option("--max-items", arguments->max_items, "Items shown at most").within(1, 1'000'000).show_default();
  verb.option("--out", arguments->out, "The page (default: NAME-step-N.html in this folder)");
  add_overrides(verb, arguments->run);
  verb.flag("--json", arguments->run.json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->run.quiet, "Shows no progress");
  verb.footer("Example: chiliad data show run.yaml --step 100 --ranks 2 --out step-100.html");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
