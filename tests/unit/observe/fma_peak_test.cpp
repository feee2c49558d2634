#include "chiliad/observe/fma_peak.h"

#include <gtest/gtest.h>

namespace chiliad::observe {
namespace {

PeakRequest short_request(FmaType type) {
  return {type, 1, std::chrono::milliseconds(2), 2};
}

TEST(FmaPeakTest, IsARateThatAProcessorCanHave) {
  const double flops = measure_fma_peak(short_request(FmaType::kF32));
  EXPECT_GT(flops, 1e7);
  EXPECT_LT(flops, 1e13);
}

TEST(FmaPeakTest, RunsOnSeveralThreads) {
  PeakRequest request = short_request(FmaType::kF32);
  request.num_threads = 3;
  EXPECT_GT(measure_fma_peak(request), 1e7);
}

}  // namespace
}  // namespace chiliad::observe
