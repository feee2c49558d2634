#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "chiliad/comm/group.h"
#include "tests/contract/group/ranks.h"

namespace chiliad::comm {

/// What every kind of group does, wherever its tensors are: link contract.cpp and instantiate this suite.
class GroupContract : public testing::TestWithParam<test::Backend> {
 protected:
  void SetUp() override;
};

/// Options of tensors for calls of `group`.
[[nodiscard]] at::TensorOptions on(const Group& group, const test::Backend& backend, at::ScalarType type);

}  // namespace chiliad::comm
