#include "kernels/host_copy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

constexpr std::int64_t kCount = 300'000;  // more than a driver stages in one piece

class HostCopy : public OperationTest {};

TEST_P(HostCopy, LeavesTheHostMemoryFreeAtOnce) {
  Device& device = *devices_[0];
  const auto first = random_floats(kCount, 1), second = random_floats(kCount, 2);
  const auto bytes = kCount * static_cast<std::int64_t>(sizeof(float));
  const Tensor x(device, {kCount}), y(device, {kCount});
  std::vector<float> ordinary(static_cast<std::size_t>(kCount));
  auto* pinned = static_cast<float*>(device.allocate_host(bytes));
  for (float* host : {ordinary.data(), pinned}) {
    std::copy(first.begin(), first.end(), host);
    copy_from_host(device.compute(), host, x);
    std::copy(second.begin(), second.end(), host);
    copy_from_host(device.compute(), host, y);
    std::fill_n(host, kCount, kNaN);
    EXPECT_EQ(read(x), first);
    EXPECT_EQ(read(y), second);
  }
  device.deallocate_host(pinned);
}

TEST_P(HostCopy, ReadsOneNumberAndNothingAtAll) {
  Device& device = *devices_[0];
  EXPECT_EQ(read_scalar(device.compute(), upload<float>(device, {1}, {2.5F})), 2.5F);
  const Tensor empty = upload<float>(device, {0, 3}, {});
  EXPECT_TRUE(read(empty).empty());
}

INSTANTIATE_TEST_SUITE_P(Setups, HostCopy, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
