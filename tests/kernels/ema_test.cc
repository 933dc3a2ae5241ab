#include "kernels/ema.h"

#include <gtest/gtest.h>

#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

constexpr std::int64_t kMeans = 5003;  // two chunks of a loop over elements, and a rest

class Ema : public OperationTest {
 protected:
  static float decay_of(int step) { return 0.5F + 0.1F * static_cast<float>(step); }
  static std::vector<float> value_of(int step) {
    return random_floats(kMeans, 20U + static_cast<std::uint32_t>(step));
  }
};

TEST_P(Ema, AgreesWithTheReferenceStepByStep) {
  constexpr int kUpdates = 5;
  auto mean = to_double(random_floats(kMeans, 1));
  for (int step = 0; step < kUpdates; ++step) {
    reference::ema_update(static_cast<double>(decay_of(step)), to_double(value_of(step)), mean);
  }
  expect_close(run([&](Device& device) {
                 Tensor own = random_tensor(device, {kMeans}, 1);
                 for (int step = 0; step < kUpdates; ++step) {
                   ema_update(device.compute(), upload<float>(device, {1}, {1 - decay_of(step)}),
                              upload(device, {kMeans}, value_of(step)), own);
                 }
                 return own;
               }),
               mean, 1e-6);
}

TEST_P(Ema, AScaleOfZeroSkipsTheStepWhateverTheValuesAre) {
  Device& device = *devices_[0];
  const Tensor mean = upload<float>(device, {2}, {1, 2}), share = upload<float>(device, {1}, {0.5});
  const Tensor broken = upload<float>(device, {2}, {kNaN, kNaN});
  ema_update(device.compute(), share, broken, mean, upload<float>(device, {1}, {0}));
  EXPECT_EQ(read(mean), (std::vector<float>{1, 2}));
  const Tensor value = upload<float>(device, {2}, {3, 6});
  ema_update(device.compute(), share, value, mean, upload<float>(device, {1}, {0.25}));
  EXPECT_EQ(read(mean), (std::vector<float>{2, 4}));
}

INSTANTIATE_TEST_SUITE_P(Setups, Ema, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
