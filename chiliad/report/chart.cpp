#include "chiliad/report/chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/report/html.h"

namespace chiliad::report {
namespace {

constexpr double kWidth = 520.0;
constexpr double kHeight = 200.0;
constexpr double kLeft = 62.0;
constexpr double kRight = 10.0;
constexpr double kTop = 8.0;
constexpr double kBottom = 24.0;
constexpr size_t kColumns = 400;
constexpr int kTicks = 4;
constexpr size_t kColors = 9;  // of the page's style

/// Numbers of one axis onto pixels.
struct Scale {
  double low = 0.0;
  double high = 1.0;
  double from = 0.0;
  double to = 1.0;
  [[nodiscard]] double operator()(double value) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

Scale make_scale(double low, double high, double from, double to) {
  if (!(high > low)) {  // one value, or none
    const double half = low == 0.0 || !std::isfinite(low) ? 1.0 : std::abs(low) * 0.1;
    if (!std::isfinite(low)) low = 0.0;
    high = low + half;
    low -= half;
  }
  return {low, high, from, to};
}

/// About kTicks round numbers inside.
std::vector<double> ticks_of(const Scale& scale) {
  const double rough = (scale.high - scale.low) / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / power;
  const double step = power * (digit < 1.5 ? 1.0 : digit < 3.5 ? 2.0 : digit < 7.5 ? 5.0 : 10.0);
  std::vector<double> ticks;
  for (double tick = std::ceil(scale.low / step);
       tick * step <= scale.high * (1 + 1e-12) && ticks.size() < 20; tick += 1.0) {
    ticks.push_back(tick * step);
  }
  return ticks;
}

std::string frame(const Scale& x, const Scale& y, const std::vector<double>& marks) {
  std::string svg;
  for (const double tick : ticks_of(y)) {
    svg += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       x.from, x.to, y(tick), y(tick));
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.5g}</text>\n", x.from - 6,
                       y(tick) + 4, tick);
  }
  for (const double tick : ticks_of(x))
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n", x(tick),
                       kHeight - 6, tick);
  for (const double mark : marks) {
    if (mark < x.low || mark > x.high) continue;
    svg += fmt::format(
        "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"><title>resumed at "
        "step {3:.0f}</title></line>\n",
        x(mark), y.from, y.to, mark);
  }
  return svg;
}

std::string figure(const ChartOptions& options, const std::string& inside, const std::string& legend,
                   double height = kHeight) {
  const std::string unit =
      options.unit.empty() ? "" : " <span class=\"soft\">" + escape(options.unit) + "</span>";
  return fmt::format(
      "<figure><figcaption>{}{}</figcaption><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n{}</svg>{}</figure>\n",
      escape(options.title), unit, kWidth, height, escape(options.title), inside, legend);
}

Scale step_scale(const std::vector<double>& steps) {
  const double low = steps.empty() ? 0.0 : steps.front();
  const double high = steps.empty() ? 0.0 : steps.back();
  return make_scale(low, high, kLeft, kWidth - kRight);
}

std::string nothing(const ChartOptions& options) {
  return figure(options,
                fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">nothing yet</text>",
                            kWidth / 2, kHeight / 2),
                "");
}

/// Sums over neighbours, so that short and long lines weigh what they lasted.
struct Groups {
  std::vector<double> steps;              ///< the first group begins and the last one ends where they all do
  std::vector<std::vector<double>> sums;  ///< [curve][group]
  std::vector<double> totals;             ///< [group]
};

Groups group(const std::vector<double>& steps, const std::vector<Curve>& curves, size_t count) {
  Groups groups{{},
                std::vector<std::vector<double>>(curves.size(), std::vector<double>(count, 0.0)),
                std::vector<double>(count, 0.0)};
  for (size_t at = 0; at < count; ++at) {
    const size_t begin = steps.size() * at / count;
    const size_t end = steps.size() * (at + 1) / count;
    groups.steps.push_back((steps[begin] + steps[end - 1]) / 2.0);
    for (size_t c = 0; c < curves.size(); ++c) {
      for (size_t i = begin; i < end; ++i) {
        if (std::isfinite(curves[c].values[i])) groups.sums[c][at] += curves[c].values[i];
      }
      groups.totals[at] += groups.sums[c][at];
    }
  }
  if (count > 0) {
    groups.steps.front() = steps.front();
    groups.steps.back() = steps.back();
  }
  return groups;
}

/// Between two lines.
std::string area(const std::vector<double>& steps, const std::vector<double>& low,
                 const std::vector<double>& high, const Scale& x, const Scale& y) {
  std::string path;
  const auto at = [&](size_t i) { return steps.size() > 1 ? x(steps[i]) : x.from; };
  for (size_t i = 0; i < steps.size(); ++i)
    path += fmt::format("{}{:.1f} {:.2f}", i == 0 ? 'M' : 'L', at(i), y(high[i]));
  // A single group is as wide as the picture.
  if (steps.size() == 1)
    path += fmt::format("L{:.1f} {:.2f}L{:.1f} {:.2f}", x.to, y(high[0]), x.to, y(low[0]));
  for (size_t i = steps.size(); i-- > 0;) path += fmt::format("L{:.1f} {:.2f}", at(i), y(low[i]));
  return path + "Z";
}

}  // namespace

std::vector<size_t> thin_out(const std::vector<double>& values, size_t columns) {
  std::vector<size_t> kept;
  if (values.size() <= 2 * columns) {
    for (size_t i = 0; i < values.size(); ++i) kept.push_back(i);
    return kept;
  }
  for (size_t column = 0; column < columns; ++column) {
    const size_t begin = values.size() * column / columns;
    const size_t end = values.size() * (column + 1) / columns;
    size_t least = begin;
    size_t greatest = begin;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      if (!(values[least] <= values[i])) least = i;  // also where that one is not a number
      if (!(values[greatest] >= values[i])) greatest = i;
    }
    kept.push_back(std::min(least, greatest));
    if (least != greatest) kept.push_back(std::max(least, greatest));
  }
  return kept;
}

std::string bar_chart(const std::vector<Bar>& bars, const std::string& title) {
  constexpr double kLine = 20.0;
  constexpr double kLabels = 150.0;
  constexpr double kNumbers = 120.0;
  double most = 0.0;
  double total = 0.0;
  for (const Bar& bar : bars) {
    most = std::max(most, bar.value);
    total += bar.value;
  }
  if (total <= 0.0) return nothing({.title = title, .unit = ""});
  std::string svg;
  double y = 0.0;
  for (const Bar& bar : bars) {
    const double width = (kWidth - kLabels - kNumbers) * bar.value / most;
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>", kLabels - 8, y + 14,
                       escape(bar.label));
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" style=\"fill:var(--s0)\"/>",
        kLabels, y + 3, width, kLine - 6);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{:.0f} ({:.1f} %)</text>\n", kLabels + width + 6,
                       y + 14, bar.value, 100.0 * bar.value / total);
    y += kLine;
  }
  return figure({.title = title, .unit = ""}, svg, "", y + 4);
}

std::string line_chart(const std::vector<double>& steps, const Curve& curve, const ChartOptions& options) {
  CHILIAD_CHECK_EQ(steps.size(), curve.values.size());
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : curve.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!std::isfinite(low)) return nothing(options);
  if (options.from_zero) low = std::min(low, 0.0);
  const Scale x = step_scale(steps);
  const Scale y = make_scale(low, high, kHeight - kBottom, kTop);
  std::string path;
  bool drawing = false;
  for (const size_t i : thin_out(curve.values, kColumns)) {
    const double value = curve.values[i];
    if (std::isfinite(value))
      path += fmt::format("{}{:.1f} {:.1f}", drawing ? 'L' : 'M', x(steps[i]), y(value));
    drawing = std::isfinite(value);
  }
  const std::string shape =
      steps.size() == 1
          ? fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" style=\"fill:var(--s0)\"/>", x(steps[0]),
                        y(curve.values[0]))
          : fmt::format("<path d=\"{}\" style=\"fill:none;stroke:var(--s0);stroke-width:1.5\"/>", path);
  return figure(options, frame(x, y, options.marks) + shape, "");
}

std::string share_chart(const std::vector<double>& steps, const std::vector<Curve>& curves,
                        const ChartOptions& options) {
  const Groups groups = group(steps, curves, std::min(steps.size(), kColumns));
  const size_t count = groups.totals.size();
  if (count == 0) return nothing(options);
  const Scale x = step_scale(steps);
  const Scale y = make_scale(0.0, 100.0, kHeight - kBottom, kTop);
  std::string areas;
  std::string legend = "<div class=\"legend\">";
  std::vector<double> low(count, 0.0);
  for (size_t c = 0; c < curves.size(); ++c) {
    std::vector<double> high = low;
    for (size_t i = 0; i < count; ++i)
      high[i] += groups.totals[i] > 0.0 ? 100.0 * groups.sums[c][i] / groups.totals[i] : 0.0;
    areas += fmt::format("<path d=\"{}\" style=\"fill:var(--s{})\"><title>{}</title></path>\n",
                         area(groups.steps, low, high, x, y), c % kColors, escape(curves[c].name));
    legend += fmt::format("<span><i style=\"background:var(--s{})\"></i>{}</span>", c % kColors,
                          escape(curves[c].name));
    low = std::move(high);
  }
  return figure(options, areas + frame(x, y, options.marks), legend + "</div>");
}

}  // namespace chiliad::report
