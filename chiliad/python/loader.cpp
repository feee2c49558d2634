#include "chiliad/loader/loader.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/python/bindings.h"
#include "chiliad/python/interrupts.h"
#include "chiliad/python/opened_run.h"
#include "chiliad/python/rank_loader.h"
#include "chiliad/python/text.h"
#include "chiliad/text/byte_tokenizer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace chiliad::python {
namespace {

nb::dlpack::dtype dtype_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return nb::dtype<uint8_t>();
    case DType::kI32:
      return nb::dtype<int32_t>();
    case DType::kF32:
      return nb::dtype<float>();
    case DType::kF16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case DType::kBF16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};
    default:
      CHILIAD_CHECK(false, "batches have no {}", dtype_name(dtype));
  }
}

/// Views of a batch's memory that keep it alive.
class BatchArrays {
 public:
  explicit BatchArrays(const std::shared_ptr<HeldBatch>& held) : owner_(nb::cast(held)) {}

  /// A numpy array; of bf16, which numpy lacks, an object with __dlpack__ alone.
  [[nodiscard]] nb::object view(HostArray& array) const {
    std::vector<size_t> shape;
    for (const int64_t size : array.shape().sizes()) shape.push_back(static_cast<size_t>(size));
    return make(array.data(), shape, dtype_of(array.dtype()), array.dtype() == DType::kBF16);
  }
  template <typename T>
  [[nodiscard]] nb::object view(std::vector<T>& values) const {
    return make(values.data(), {values.size()}, nb::dtype<T>(), false);
  }
  /// [B, 1] as [B].
  [[nodiscard]] nb::object flat(HostArray& array) const {
    return make(array.data(), {static_cast<size_t>(array.count())}, dtype_of(array.dtype()), false);
  }

 private:
  [[nodiscard]] nb::object make(void* data, const std::vector<size_t>& shape, nb::dlpack::dtype dtype,
                                bool by_dlpack) const {
    static int nothing = 0;  // an empty array, too, points somewhere
    if (data == nullptr) data = &nothing;
    const int device = nb::device::cpu::value;
    if (by_dlpack)
      return nb::cast(nb::ndarray<nb::array_api>(data, shape.size(), shape.data(), owner_, nullptr, dtype,
                                                 device, 0, 'C'));
    return nb::cast(
        nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner_, nullptr, dtype, device, 0, 'C'));
  }

  nb::object owner_;
};

nb::list keys_of(const loader::Batch& batch, const index::Index& index) {
  nb::list keys;
  for (const stepplan::Item& item : batch.items) keys.append(text_of(index.key(item.sample)));
  return keys;
}

/// Of each picture: row of its item, first position, number of positions, first tile, number of tiles.
nb::list pictures_of(const loader::Batch& batch) {
  nb::list list;
  for (size_t i = 0; i < batch.pictures.size(); ++i) {
    for (const loader::PictureSpan& span : batch.pictures[i])
      list.append(nb::make_tuple(i, batch.cu_seqlens[i] + span.first, span.count,
                                 batch.cu_tiles[i] + span.first_tile, span.num_tiles));
  }
  return list;
}

/// Of the bytes that are tokens; the null caption is "".
nb::list captions_of(loader::Batch& batch) {
  nb::list captions;
  const auto tokens = batch.tokens.as<int32_t>();
  const size_t length = batch.items.empty() ? 0 : tokens.size() / batch.items.size();
  for (size_t i = 0; i < batch.items.size(); ++i) {
    const auto row = tokens.subspan(i * length, static_cast<size_t>(batch.token_counts[i]));
    captions.append(text_of(text::ByteTokenizer::decode(row)));
  }
  return captions;
}

void add_arrays(loader::Batch& batch, const BatchArrays& arrays, const OpenedRun& run, nb::dict& dict) {
  if (batch.is_row()) {
    dict["tokens"] = arrays.view(batch.tokens);
    dict["targets"] = arrays.view(batch.targets);
    dict["cu_seqlens"] = arrays.view(batch.cu_seqlens);
    if (run.inputs().conversations == nullptr) return;
    dict["tiles"] = arrays.view(batch.tiles);
    dict["pictures"] = pictures_of(batch);
    return;
  }
  const bool on_latents = run.inputs().columns.latents != nullptr;
  if (!on_latents) {
    dict["pixels"] = arrays.view(batch.pixels);
    dict["tokens"] = arrays.view(batch.tokens);
    dict["token_counts"] = arrays.view(batch.token_counts);
    dict["captions"] = captions_of(batch);
    return;
  }
  dict["latents"] = arrays.view(batch.latents);
  if (run.inputs().columns.text == nullptr) {
    dict["classes"] = arrays.flat(batch.tokens);
    return;
  }
  dict["text"] = arrays.view(batch.text);
  dict["token_counts"] = arrays.view(batch.token_counts);
  if (run.inputs().columns.text->pooled().has_value()) dict["pooled"] = arrays.view(batch.pooled);
}

using Named = nb::typed<nb::dict, nb::str, nb::any>;

Named make_dict(const std::shared_ptr<HeldBatch>& held, const OpenedRun& run) {
  const BatchArrays arrays(held);
  loader::Batch& batch = held->batch();
  nb::dict dict;
  add_arrays(batch, arrays, run, dict);
  dict["weight"] = arrays.view(held->weights());
  dict["sample"] = arrays.view(held->samples());
  dict["draw_key"] = arrays.view(held->draw_keys());
  dict["keys"] = keys_of(batch, run.index());
  nb::list bad;
  for (const auto& [row, reason] : held->bad()) bad.append(nb::make_tuple(row, text_of(reason)));
  dict["bad"] = bad;
  const HeldBatch::Place& place = held->place();
  dict["step"] = place.step;
  dict["epoch"] = place.epoch;
  dict["slot"] = place.slot;
  dict["num_slots"] = place.num_slots;
  dict["num_items"] = place.num_items;
  dict["num_tokens"] = place.num_tokens;
  return nb::borrow<Named>(dict);
}

/// The rest of the epoch that the loader was in.
struct EpochIterator {
  std::shared_ptr<RankLoader> loader;
  int64_t epoch = 0;
  bool over = false;

  Named next() {
    std::shared_ptr<HeldBatch> held;
    while (held == nullptr) {
      over = over || loader->is_over(epoch);
      if (over) throw nb::stop_iteration();
      wait_interruptibly([this](Nanoseconds most) { return loader->wait(most); });
      held = loader->take(epoch);
    }
    return make_dict(held, loader->run());
  }
};

struct Arguments {
  int rank = 0;
  int num_ranks = 1;
  std::optional<int> threads;
  std::optional<int64_t> prefetch_bytes;
  std::optional<int64_t> prefetch_steps;
  std::optional<int64_t> cache_bytes;
  std::optional<int64_t> held_bytes;
  std::optional<double> read_deadline;
  int64_t epochs = 0;
  std::string on_bad;
  std::string journal;
};

template <typename T>
void set_positive(const char* name, const std::optional<T>& value, T least, T& option) {
  if (!value.has_value()) return;
  if (*value < least) throw InvalidInput(name, fmt::format("expected at least {}, got {}", least, *value));
  option = *value;
}

RankLoaderOptions options_of(const OpenedRun& run, const Arguments& arguments) {
  if (arguments.num_ranks < 1)
    throw InvalidInput("world_size", fmt::format("expected at least 1, got {}", arguments.num_ranks));
  if (arguments.rank < 0 || arguments.rank >= arguments.num_ranks) {
    throw InvalidInput("rank", fmt::format("expected 0 to {} for world_size {}, got {}",
                                           arguments.num_ranks - 1, arguments.num_ranks, arguments.rank));
  }
  if (arguments.epochs < 0)
    throw InvalidInput("epochs", fmt::format("expected at least 0, got {}", arguments.epochs));
  const spec::RunFile& file = run.file();
  RankLoaderOptions options;
  options.loader = loader::loader_options(file, run.inputs(), spec::rates_of(file.parallel), arguments.rank,
                                          arguments.num_ranks);
  options.loader.tune = false;  // processors are the caller's to share out
  set_positive("threads", arguments.threads, 1, options.loader.num_threads);
  set_positive("prefetch_bytes", arguments.prefetch_bytes, int64_t{0}, options.loader.prefetch_bytes);
  set_positive("prefetch_steps", arguments.prefetch_steps, int64_t{1}, options.loader.prefetch_steps);
  set_positive("cache_bytes", arguments.cache_bytes, int64_t{0}, options.loader.cache_bytes);
  set_positive("held_bytes", arguments.held_bytes, int64_t{0}, options.held_bytes);
  double deadline = to_seconds(options.loader.read_deadline);
  set_positive("read_deadline", arguments.read_deadline, 0.001, deadline);
  options.loader.read_deadline =
      std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(std::min(deadline, 1e6)));
  options.epochs = arguments.epochs;
  options.stops_at_bad =
      arguments.on_bad.empty() ? file.data.on_bad_item == "stop" : arguments.on_bad == "raise";
  if (!arguments.on_bad.empty() && arguments.on_bad != "raise" && arguments.on_bad != "mask")
    throw InvalidInput("on_bad", fmt::format("expected mask or raise, got '{}'", arguments.on_bad));
  options.max_bad_fraction = file.data.max_bad_fraction;
  options.journal = read_journal(arguments.journal);
  return options;
}

Named stats_of(const RankLoader& loader) {
  const loader::LoaderStats stats = loader.stats();
  nb::dict dict;
  dict["items"] = stats.items;
  dict["bytes_read"] = stats.bytes_read;
  dict["bytes_planned"] = stats.bytes_planned;
  dict["cache_hits"] = stats.cache_hits;
  dict["bad_items"] = stats.bad_items;
  dict["wait_seconds"] = stats.wait_seconds;
  dict["held_bytes"] = loader.held().bytes.load();
  dict["held_batches"] = loader.held().count.load();
  return nb::borrow<Named>(dict);
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<HeldBatch>(module, "HeldBatch");

  nb::class_<EpochIterator>(module, "EpochIterator")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> EpochIterator"))
      .def("__next__", &EpochIterator::next);

  nb::class_<RankLoader>(module, "RankLoader")
      .def_static(
          "make",
          [](const std::shared_ptr<const OpenedRun>& run, int rank, int num_ranks, std::optional<int> threads,
             std::optional<int64_t> prefetch_bytes, std::optional<int64_t> prefetch_steps,
             std::optional<int64_t> cache_bytes, std::optional<int64_t> held_bytes,
             std::optional<double> read_deadline, int64_t epochs, const std::string& on_bad,
             const std::string& journal) {
            return RankLoader::make(
                run, options_of(*run, {rank, num_ranks, threads, prefetch_bytes, prefetch_steps, cache_bytes,
                                       held_bytes, read_deadline, epochs, on_bad, journal}));
          },
          "run"_a, nb::kw_only(), "rank"_a, "num_ranks"_a, "threads"_a.none(), "prefetch_bytes"_a.none(),
          "prefetch_steps"_a.none(), "cache_bytes"_a.none(), "held_bytes"_a.none(), "read_deadline"_a.none(),
          "epochs"_a, "on_bad"_a, "journal"_a)
      .def("__iter__",
           [](const std::shared_ptr<RankLoader>& loader) {
             return EpochIterator{loader, loader->epoch()};
           })
      .def_prop_ro("epoch", &RankLoader::epoch)
      .def_prop_ro("next_step", &RankLoader::next_step)
      .def("state_json", [](const RankLoader& loader) { return loader.cursor().to_json(); })
      .def("resume",
           [](RankLoader& loader, const std::string& json) {
             const auto cursor = stepplan::Cursor::from_json(json);
             const WithoutGil released;
             loader.resume(cursor);
           })
      .def("seek", &RankLoader::seek, "step"_a, nb::call_guard<WithoutGil>())
      .def("stats", &stats_of)
      .def("close", &RankLoader::close, nb::call_guard<WithoutGil>());
}

}  // namespace chiliad::python
