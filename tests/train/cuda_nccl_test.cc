// Training over NCCL, between GPUs: of this machine, or of the stand-in for GPUs
// (RINGLET_STAND_IN_GPUS=2). Skipped where there are fewer than two.
#include <gtest/gtest.h>

#include <string>

#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/cuda_devices.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

class CudaNcclTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "there are fewer than two GPUs";
    if (comm::nccl_version().empty()) GTEST_SKIP() << "there is no NCCL";
  }
  /// On GPUs 0 and 1.
  static TrainOptions between_gpus(TrainOptions options, TransportChoice transport) {
    options.execution.devices = {{DeviceKind::cuda, 0}, {DeviceKind::cuda, 1}};
    options.execution.transport = transport;
    options.execution.bucket_kb = 64;
    options.max_steps = 4;
    return options;
  }
};

// A sum of two numbers has the same bits in either order, and exact mode has its own order.
TEST_F(CudaNcclTraining, ThreadsLearnWhatTheyLearnOverTheLocalTransport) {
  const data::Splits data = formula_splits(150);
  const auto bytes = [&](const TrainOptions& options, TransportChoice transport) {
    return bytes_of(run(between_gpus(options, transport), data).state);
  };
  TrainOptions narrow = plain_options(2, "ring");
  narrow.recipe.grad_dtype = DType::bf16;
  const std::string expected = bytes(plain_options(2, "ring"), TransportChoice::local);
  EXPECT_EQ(bytes(plain_options(2, "ring"), TransportChoice::nccl), expected);
  EXPECT_EQ(bytes(plain_options(2, "nccl"), TransportChoice::nccl), expected);
  EXPECT_EQ(bytes(plain_options(2, "library"), TransportChoice::nccl), expected);
  EXPECT_EQ(bytes(narrow, TransportChoice::nccl), bytes(narrow, TransportChoice::local));
  EXPECT_EQ(bytes(exact_options(2), TransportChoice::nccl),
            bytes(exact_options(2), TransportChoice::local));
}

}  // namespace
}  // namespace ringlet::train
