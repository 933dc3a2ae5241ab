// kernels/grid/: updates of parameters and the scale of the loss, on the host (grid_fixture.h),
// compared with the references.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/grid/adamw.h"
#include "kernels/grid/ema.h"
#include "kernels/grid/loss_scale.h"
#include "kernels/grid/running_statistics.h"
#include "kernels/grid/sgd.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

constexpr std::int64_t kCountOfSkipped = 37;

TEST_P(Grid, Sgd) {
  constexpr std::int64_t kCount = 1003;
  constexpr float kRate = 0.1F;
  for (const bool nesterov : {false, true}) {
    for (const float momentum : {0.0F, 0.9F}) {
      const SgdSpec spec{.weight_decay = 0.1F, .nesterov = nesterov};
      const auto gradient = random_floats(kCount, 2);
      auto value = to_double(random_floats(kCount, 1)),
           velocity = to_double(random_floats(kCount, 3));
      const View value_view = put({kCount}, random_floats(kCount, 1));
      const View velocity_view = put({kCount}, random_floats(kCount, 3));
      reference::sgd_update(spec, static_cast<double>(kRate), static_cast<double>(momentum), value,
                            to_double(gradient), velocity);
      grid::sgd_update(grid_, spec, put<float>({2}, {kRate, momentum}), value_view,
                       put({kCount}, gradient), velocity_view);
      EXPECT_LE(error_of(value_view, value), 1e-6);
      EXPECT_LE(error_of(velocity_view, velocity), 1e-6);
    }
  }
}

TEST_P(Grid, UpdatesScaleTheGradientAndDecayWhereTheTableSaysSo) {
  constexpr std::int64_t kCount = 1003;
  constexpr float kScale = 0.25F;
  std::vector<std::uint8_t> decays;
  for (const auto decay : random_labels(decay_blocks(kCount), 5, 2)) {
    decays.push_back(static_cast<std::uint8_t>(decay));
  }
  const auto start = random_floats(kCount, 1), gradient = random_floats(kCount, 2);
  const View scale = put<float>({1}, {kScale}), table = put({decay_blocks(kCount)}, decays);

  auto value = to_double(start), velocity = to_double(random_floats(kCount, 3));
  const SgdSpec sgd{.weight_decay = 0.1F};
  const View sgd_value = put({kCount}, start);
  reference::sgd_update(sgd, 0.5, 0.75, value, to_double(gradient), velocity,
                        static_cast<double>(kScale), decays);
  grid::sgd_update(grid_, sgd, put<float>({2}, {0.5F, 0.75F}), sgd_value, put({kCount}, gradient),
                   put({kCount}, random_floats(kCount, 3)), scale, table);
  EXPECT_LE(error_of(sgd_value, value), 1e-6);

  const reference::AdamWHyper hyper{.learning_rate = 0.1, .weight_decay = 0.5};
  auto adam = to_double(start);
  std::vector<double> mean(kCount), square(kCount);
  const View adam_value = put({kCount}, start), mean_view = filled({kCount}, 0.0F),
             square_view = filled({kCount}, 0.0F);
  for (int t = 1; t <= 3; ++t) {
    reference::adamw_update(hyper, t, adam, to_double(gradient), mean, square,
                            static_cast<double>(kScale), decays);
    const std::vector<float> rates = {0.1F, 0.05F, static_cast<float>(0.1 / (1 - std::pow(0.9, t))),
                                      static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, t)))};
    grid::adamw_update(grid_, {}, put({4}, rates), adam_value, put({kCount}, gradient), mean_view,
                       square_view, scale, table);
  }
  EXPECT_LE(error_of(adam_value, adam), 2e-6);
  EXPECT_LE(error_of(mean_view, mean), 1e-6);
  EXPECT_LE(error_of(square_view, square), 1e-6);
}

TEST_P(Grid, Ema) {
  constexpr std::int64_t kCount = 1003;
  constexpr float kDecay = 0.75F;
  const auto start = random_floats(kCount, 1), value = random_floats(kCount, 2);
  auto mean = to_double(start);
  reference::ema_update(static_cast<double>(kDecay), to_double(value), mean);
  const View view = put({kCount}, start), share = put<float>({1}, {1 - kDecay});
  grid::ema_update(grid_, share, put({kCount}, value), view);
  EXPECT_LE(error_of(view, mean), 1e-6);
}

TEST_P(Grid, AScaleOfZeroSkipsAnUpdate) {
  const std::vector<float> start = random_floats(kCountOfSkipped, 1);
  const View zero = put<float>({1}, {0}), broken = filled<float>({kCountOfSkipped}, kNaN);
  const View value = put({kCountOfSkipped}, start), a = put({kCountOfSkipped}, start),
             b = put({kCountOfSkipped}, start);
  grid::sgd_update(grid_, {}, put<float>({2}, {0.5F, 0.9F}), value, broken, a, zero);
  grid::adamw_update(grid_, {}, put<float>({4}, {0.1F, 0, 0.1F, 1}), value, broken, a, b, zero);
  const View mean = put({kCountOfSkipped}, start);
  grid::ema_update(grid_, put<float>({1}, {0.5F}), broken, mean, zero);
  for (const View& view : {value, a, b, mean}) EXPECT_EQ(read(view), start);
  const View running = put<float>({2}, {1, 2}), counter = put<std::int32_t>({1}, {3});
  const View targets = put<std::int32_t>({5, 2}, {0, 2, 1, 2, -2, 2, -1, 2, -1, 2});
  const View update = put<float>({5}, {5, 6, 1, 1, 0});
  grid::running_statistics_commit(grid_, update, targets, running, counter, zero);
  EXPECT_EQ(read(running), (std::vector<float>{1, 2}));
  EXPECT_EQ(read<std::int32_t>(counter), std::vector<std::int32_t>{3});
  grid::running_statistics_commit(grid_, update, targets, running, counter, put<float>({1}, {1}));
  EXPECT_EQ(read(running), (std::vector<float>{5, 6}));
}

TEST_P(Grid, LossScale) {
  const View state = put<float>({4}, {1024, 9, 0, 2}), seed = put<float>({1}, {0.5F}),
             rates = blank({3});
  grid::loss_scale_begin(grid_, state, put<float>({1}, {3}), put<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                         seed, rates);
  EXPECT_EQ(read(seed), std::vector<float>{512});
  EXPECT_EQ(read(rates), (std::vector<float>{4, 5, 6}));
  const View norm = put<float>({1}, {2048}), factor = blank({2}), told = blank({2});
  grid::loss_scale_end(grid_, {.growth_interval = 10}, norm, state, factor, told);
  EXPECT_EQ(read(norm), std::vector<float>{2});
  EXPECT_EQ(read(factor), (std::vector<float>{1.0F / 1024, 1.0F / 1024}));
  EXPECT_EQ(read(state), (std::vector<float>{2048, 0, 0, 2}));
  EXPECT_EQ(read(told), (std::vector<float>{0, 1024}));
}

TEST_P(Grid, SgdWithoutVelocityDescendsAndShowsAMomentum) {
  const View value = put<float>({5}, {1, 2, 3, 4, 5}), gradient = filled({5}, 10.0F);
  grid::sgd_update(grid_, {}, put<float>({2}, {0.5F, 0}), value, gradient, {});
  EXPECT_EQ(read(value), (std::vector<float>{-4, -3, -2, -1, 0}));
  grid::sgd_update(grid_, {}, put<float>({2}, {0.5F, 0.9F}), value, gradient, {});
  for (const float shown : read(value)) EXPECT_TRUE(std::isnan(shown));
}

}  // namespace
}  // namespace ringlet::test
