#pragma once

#include <string>
#include <vector>

namespace chiliad::report {

/// Values over steps; a value that is not finite is a gap.
struct Curve {
  std::string name;
  std::vector<double> values;
};

struct ChartOptions {
  std::string title;
  std::string unit;             ///< behind the title; may be empty
  bool from_zero = false;       ///< the value axis begins at 0
  std::vector<double> marks{};  ///< steps with a vertical line, e.g. resumes
};

/// Values that a chart draws of many: `columns` groups of neighbours, the least and the greatest of each, in
/// their order, so that a spike of one step stays. Indices into `values`.
[[nodiscard]] std::vector<size_t> thin_out(const std::vector<double>& values, size_t columns);

struct Bar {
  std::string label;
  double value = 0.0;  ///< not below 0
};
/// `<figure>` with a bar a line, the longest as wide as the picture, each with its number and its share.
[[nodiscard]] std::string bar_chart(const std::vector<Bar>& bars, const std::string& title);

/// `<figure>` with an inline SVG of the curve. steps: ascending, of each value.
[[nodiscard]] std::string line_chart(const std::vector<double>& steps, const Curve& curve,
                                     const ChartOptions& options);
/// The curves on top of each other, as shares of their sum, with a legend.
[[nodiscard]] std::string share_chart(const std::vector<double>& steps, const std::vector<Curve>& curves,
                                      const ChartOptions& options);

}  // namespace chiliad::report
