#include "kernels/sgd.h"

#include <gtest/gtest.h>

#include "kernels/error.h"
#include "kernels/reference/sgd.h"
#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

constexpr int kSteps = 5;
constexpr std::int64_t kCount = 5003;  // two chunks of a loop over elements, and a rest

struct SgdCase {
  const char* name;
  SgdSpec spec;
  float momentum;
};

class Sgd : public testing::TestWithParam<SgdCase> {
 protected:
  /// The values after kSteps steps whose learning rate changes.
  Tensor train(int threads) const {
    const auto device = open_device({}, {threads, false});
    Tensor value = random_tensor(*device, {kCount}, 1);
    const Tensor velocity = upload(*device, {kCount}, std::vector<float>(kCount, 0.0F));
    for (int step = 0; step < kSteps; ++step) {
      sgd_update(device->compute(), GetParam().spec,
                 upload<float>(*device, {2}, {rate(step), GetParam().momentum}), value,
                 random_tensor(*device, {kCount}, 10U + static_cast<std::uint32_t>(step)),
                 velocity);
    }
    // The device ends here: hand the values over to one that stays.
    return upload(*keeper_, {kCount}, read(value));
  }

  static float rate(int step) { return 0.1F * static_cast<float>(step + 1); }

  std::unique_ptr<Device> keeper_ = open_device({}, {1, false});
};

TEST_P(Sgd, AgreesWithTheReferenceStepByStep) {
  auto value = to_double(random_floats(kCount, 1));
  std::vector<double> velocity(kCount);
  for (int step = 0; step < kSteps; ++step) {
    reference::sgd_update(
        GetParam().spec, static_cast<double>(rate(step)), static_cast<double>(GetParam().momentum),
        value, to_double(random_floats(kCount, 10U + static_cast<std::uint32_t>(step))), velocity);
  }
  const Tensor one = train(1), three = train(3);
  EXPECT_LE(relative_l2(read(one), value), 1e-6);
  EXPECT_TRUE(same_bytes(one, three));
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Sgd,
    testing::Values(SgdCase{"plain", {}, 0}, SgdCase{"momentum", {}, 0.9F},
                    SgdCase{"nesterov", {.nesterov = true}, 0.9F},
                    SgdCase{"weight_decay", {.weight_decay = 0.1F}, 0},
                    SgdCase{"everything", {.weight_decay = 0.1F, .nesterov = true}, 0.8F}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(SgdWithoutVelocity, IsPlainDescentAndRefusesMomentum) {
  const auto device = open_device({}, {1, false});
  Stream& stream = device->compute();
  const Tensor value = upload<float>(*device, {2}, {1, 2});
  const Tensor gradient = upload<float>(*device, {2}, {10, -10});
  const SgdSpec decay{.weight_decay = 1};
  sgd_update(stream, decay, upload<float>(*device, {2}, {0.5F, 0}), value, gradient, {});
  EXPECT_EQ(read(value), (std::vector<float>{1 - 0.5F * 11, 2 + 0.5F * 8}));
  EXPECT_THROW(
      sgd_update(stream, decay, upload<float>(*device, {2}, {0.5F, 0.9F}), value, gradient, {}),
      ContractError);
}

}  // namespace
}  // namespace ringlet::test
