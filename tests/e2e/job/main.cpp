#include <gtest/gtest.h>

#include <string_view>

#include "tests/e2e/job/fake_worker.h"

/// The test and its own worker: `train` as the first argument makes it the fake worker.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "train") return chiliad::test::fake_worker_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
