#include "chiliad/index/index.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <memory>

#include "chiliad/base/error.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/stats.h"
#include "chiliad/python/bindings.h"
#include "chiliad/python/interrupts.h"
#include "chiliad/python/text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace chiliad::python {
namespace {

using Report = nb::typed<nb::dict, nb::str, nb::any>;

Report build(const std::filesystem::path& source, const std::filesystem::path& out,
             const dataset::IndexOptions& options, const nb::object& progress) {
  const auto report = run_interruptibly(
      [&](const dataset::Progress& step) { return dataset::build_index(source, out, options, step); },
      [&](int64_t done, int64_t total) {
        if (!progress.is_none()) progress(done, total);
      });
  nb::list bad;
  for (const dataset::BadSample& sample : report.bad)
    bad.append(nb::make_tuple(text_of(sample.key), text_of(sample.file), text_of(sample.reason)));
  nb::dict made;
  made["samples"] = report.manifest.num_samples;
  made["shards"] = report.manifest.shards.size();
  made["shards_reused"] = report.shards_reused;
  made["bytes_read"] = report.bytes_read;
  made["bad"] = bad;
  return nb::borrow<Report>(made);
}

int64_t checked(const index::Index& index, int64_t sample) {
  if (0 <= sample && sample < index.num_samples()) return sample;
  throw nb::index_error("sample: not in the index");
}

}  // namespace

void bind_index(nb::module_& module) {
  module.def(
      "build_index",
      [](const std::filesystem::path& source, const std::filesystem::path& out, const std::string& layout,
         int threads, bool replace, const nb::object& progress) {
        dataset::IndexOptions options;
        options.layout = layout;
        options.threads = threads;
        options.replace = replace;
        return build(source, out, options, progress);
      },
      "source"_a, "out"_a, "layout"_a, "threads"_a, "replace"_a, "progress"_a.none(),
      nb::sig("def build_index(source: str, out: str, layout: str, threads: int, replace: bool, progress: "
              "typing.Callable[[int, int], object] | None) -> dict[str, typing.Any]"));

  using index::Index;
  nb::class_<Index>(module, "Index")
      .def_static(
          "open",
          [](const std::filesystem::path& folder) {
            const WithoutGil released;
            return std::make_shared<Index>(Index::open(folder));
          },
          "folder"_a, nb::sig("def open(folder: str) -> Index"))
      .def("__len__", &Index::num_samples)
      .def_prop_ro("layout", [](const Index& index) { return index.manifest().layout; })
      .def_prop_ro("root", [](const Index& index) { return text_of(index.manifest().root); })
      .def_prop_ro("digest", [](const Index& index) { return index.manifest().digest.hex(); })
      .def(
          "key",
          [](const Index& index, int64_t sample) { return text_of(index.key(checked(index, sample))); },
          "sample"_a)
      .def("stats_json", [](const Index& index) {
        const WithoutGil released;
        return dataset::to_json(dataset::compute_stats(index));
      });
}

}  // namespace chiliad::python
