#include "chiliad/stepplan/plan.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "chiliad/base/error.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/python/bindings.h"
#include "chiliad/python/interrupts.h"
#include "chiliad/python/opened_run.h"
#include "chiliad/python/text.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/report.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace chiliad::python {
namespace {

std::shared_ptr<const OpenedRun> open(const std::string& path, const std::vector<std::string>& overrides) {
  return run_interruptibly(
      [&](const dataset::Progress& progress) { return OpenedRun::open(read_run(path, overrides), progress); },
      [](int64_t, int64_t) {});
}

stepplan::PackOptions packing(const OpenedRun& run, int num_ranks) {
  if (num_ranks < 1) throw InvalidInput("world_size", fmt::format("expected at least 1, got {}", num_ranks));
  return loader::pack_options(run.file(), spec::rates_of(run.file().parallel), num_ranks);
}

stepplan::PlanReport report_of(const OpenedRun& run, int64_t epoch, int num_ranks) {
  if (epoch < 0) throw InvalidInput("epoch", fmt::format("expected at least 0, got {}", epoch));
  const WithoutGil released;
  return stepplan::make_report(run.plan(), stepplan::Journal(), epoch, packing(run, num_ranks));
}

/// Micro-batches of a rank in an epoch; all ranks have as many.
int64_t num_batches(const OpenedRun& run, int64_t epoch, int num_ranks) {
  const WithoutGil released;
  const auto options = packing(run, num_ranks);
  const stepplan::Plan& plan = run.plan();
  int64_t count = 0;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const auto selected = plan.select(epoch * plan.steps_per_epoch() + step, {});
    count += static_cast<int64_t>(stepplan::pack(selected, plan.buckets(), options).slots.at(0).size());
  }
  return count;
}

using Items = nb::typed<nb::list, nb::typed<nb::tuple, int64_t, nb::str, int32_t, int32_t>>;

Items items_of(const OpenedRun& run, int64_t step) {
  if (step < 0) throw InvalidInput("step", fmt::format("expected at least 0, got {}", step));
  nb::list items;
  for (const stepplan::Item& item : run.plan().select(step, {}).items) {
    const stepplan::Bucket bucket = run.plan().buckets()[static_cast<size_t>(item.bucket)];
    items.append(
        nb::make_tuple(item.sample, text_of(run.index().key(item.sample)), bucket.width, bucket.height));
  }
  return nb::borrow<Items>(items);
}

using Counts = nb::typed<nb::dict, nb::str, int64_t>;

Counts coverage_of(const OpenedRun& run) {
  const stepplan::Coverage& coverage = run.plan().coverage();
  nb::dict dict;
  dict["in_index"] = coverage.in_index;
  dict["in_order"] = coverage.in_order;
  dict["bad_image"] = coverage.bad_image;
  dict["no_caption"] = coverage.no_caption;
  dict["aspect"] = coverage.aspect;
  dict["too_small"] = coverage.too_small;
  dict["over_limit"] = coverage.over_limit;
  dict["held_out"] = coverage.held_out;
  dict["too_short"] = coverage.too_short;
  dict["cut"] = coverage.cut;
  dict["cut_tokens"] = coverage.cut_tokens;
  return nb::borrow<Counts>(dict);
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<OpenedRun>(module, "Run")
      .def_static("open", &open, "path"_a, "overrides"_a)
      .def_prop_ro("index_folder", [](const OpenedRun& run) { return run.file().data.index; })
      .def_prop_ro("mode", [](const OpenedRun& run) { return run.file().data.mode; })
      .def_prop_ro("batch", [](const OpenedRun& run) { return run.file().data.batch; })
      .def_prop_ro("num_items", [](const OpenedRun& run) { return run.plan().items_per_epoch(); })
      .def_prop_ro("num_steps", [](const OpenedRun& run) { return run.plan().steps_per_epoch(); })
      .def_prop_ro("coverage", &coverage_of)
      .def("num_batches", &num_batches, "epoch"_a, "num_ranks"_a)
      .def("items", &items_of, "step"_a)
      .def(
          "report_json",
          [](const OpenedRun& run, int64_t epoch, int num_ranks) {
            return report_of(run, epoch, num_ranks).to_json();
          },
          "epoch"_a, "num_ranks"_a)
      .def(
          "report_table",
          [](const OpenedRun& run, int64_t epoch, int num_ranks) {
            return report_of(run, epoch, num_ranks).to_table();
          },
          "epoch"_a, "num_ranks"_a)
      .def("run_yaml", [](const OpenedRun& run) { return spec::to_yaml(run.file()); });
}

}  // namespace chiliad::python
