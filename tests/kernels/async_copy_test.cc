#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/host_copy.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

Tensor scalar(Device& device, float value) {
  return upload(device, {1}, std::vector<float>{value});
}

TEST(Uploader, TakesTheNumbersAtOnceAndInOrder) {
  const auto device = open_device({});
  Uploader uploader(*device, 8, 2);
  const Tensor x(*device, {2});
  for (float value = 0; value < 7; ++value) {
    float host[2] = {value, -value};
    uploader.upload(device->compute(), host, x);
    host[0] = 99;  // taken: the caller may reuse it
    EXPECT_EQ(read(x), (std::vector<float>{value, -value}));
  }
}

TEST(Uploader, RefusesMoreThanWasAnnounced) {
  const auto device = open_device({});
  Uploader uploader(*device, 8);
  const Tensor x(*device, {65});
  const std::vector<float> host(65);
  EXPECT_THROW(uploader.upload(device->compute(), host.data(), x), ContractError);
}

TEST(Readback, GivesTheOldestFirst) {
  const auto device = open_device({});
  Readback readback(*device, 4, 3);
  for (float value = 1; value <= 3; ++value) {
    readback.start(device->compute(), scalar(*device, value));
  }
  for (float value = 1; value <= 5; ++value) {
    EXPECT_EQ(*static_cast<const float*>(readback.finish()), value);
    readback.start(device->compute(), scalar(*device, value + 3));
  }
}

TEST(Readback, SaysWhenNothingWasStartedOrNoSlotIsFree) {
  const auto device = open_device({});
  Readback readback(*device, 4, 1);
  EXPECT_THROW(readback.finish(), ContractError);
  const Tensor x(*device, {1});
  readback.start(device->compute(), x);
  EXPECT_THROW(readback.start(device->compute(), x), ContractError);
}

TEST(Graph, TheCpuSaysThatItCapturesNone) {
  const auto device = open_device({});
  EXPECT_FALSE(device->compute().can_capture());
  EXPECT_THROW(device->compute().begin_capture(), DeviceError);
  EXPECT_THROW((void)device->compute().end_capture(), DeviceError);
}

}  // namespace
}  // namespace ringlet::test
