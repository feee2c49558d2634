#include <fmt/core.h>

#include <numeric>

#include "chiliad/stepplan/report.h"

namespace chiliad::stepplan {

std::vector<PlanReport::SourceItems> items_of_sources(const Plan& plan, int64_t first, int64_t end) {
  std::vector<PlanReport::SourceItems> items;
  if (plan.sources().size() < 2) return items;
  const auto before = plan.given_before(first);
  const auto after = plan.given_before(end);
  const int64_t all = std::accumulate(after.begin(), after.end(), int64_t{0}) -
                      std::accumulate(before.begin(), before.end(), int64_t{0});
  for (size_t s = 0; s < before.size(); ++s) {
    const SourceSummary& source = plan.sources()[s];
    const int64_t count = after[s] - before[s];
    items.push_back({source.name, source.coverage, count,
                     static_cast<double>(count) / static_cast<double>(source.coverage.in_order),
                     all > 0 ? static_cast<double>(count) / static_cast<double>(all) : 0.0});
  }
  return items;
}

std::string PlanReport::table_of_sources() const {
  if (sources.empty()) return "";
  std::string text = "source                  share   items shown    of its own   left out   epochs\n";
  for (const SourceItems& source : sources) {
    text += fmt::format("{:<22}{:>6.2f} % {:>13} {:>13} {:>10} {:>8.2f}\n", source.name, 100.0 * source.share,
                        source.items, source.coverage.in_order,
                        source.coverage.in_index - source.coverage.in_order, source.epochs);
  }
  return text;
}

}  // namespace chiliad::stepplan
