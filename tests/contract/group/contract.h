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

/// Reduces uneven parts of `type` and checks the sums. memory: for the input of this rank,
/// reduced_count(group) floats or more; undefined: anywhere.
void check_reduce_scatter(Group& group, const at::TensorOptions& floats, at::ScalarType type, bool accumulate,
                          const at::Tensor& memory = {});
[[nodiscard]] int64_t reduced_count(const Group& group);

}  // namespace chiliad::comm
