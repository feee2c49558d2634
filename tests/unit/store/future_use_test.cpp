#include "chiliad/store/future_use.h"

#include <gtest/gtest.h>

namespace chiliad::store {
namespace {

const Digest kA{1, 1};
const Digest kB{2, 2};

TEST(FutureUseTest, NamesTheNextUseFromTheStepReached) {
  FutureUse future;
  future.append(3, {kA});
  future.append(40, {kA, kB});
  EXPECT_EQ(future.next_use(kA), 3);
  future.reached(4);
  EXPECT_EQ(future.next_use(kA), 40);
  EXPECT_EQ(future.next_use(kB), 40);
}

TEST(FutureUseTest, AUseThatPassedIsForgotten) {
  FutureUse future;
  future.append(3, {kA});
  future.reached(4);
  EXPECT_EQ(future.next_use(kA), FutureUse::kNever);
}

TEST(FutureUseTest, ABlockIsInUseBetweenStepsCloseTogether) {
  FutureUse future;
  for (const int64_t step : {10, 14, 18}) future.append(step, {kA});
  future.reached(12);
  EXPECT_EQ(future.next_use(kA), 12);
}

TEST(FutureUseTest, DoesNotGoBack) {
  FutureUse future;
  future.append(3, {kA});
  future.reached(4);
  future.reached(1);
  EXPECT_EQ(future.now(), 4);
}

}  // namespace
}  // namespace chiliad::store
