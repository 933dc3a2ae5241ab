#include "train/loop/loss_scale.h"

#include <array>

#include "kernels/host_copy.h"
#include "kernels/loss_scale.h"

namespace ringlet::train {

namespace {

using Numbers = std::array<float, kLossScaleState>;

}  // namespace

LossScale::LossScale(Device& device) : device_(device), state_(device, {kLossScaleState}) {
  upload({});
}

void LossScale::upload(const LossScaleState& state) {
  const Numbers numbers{static_cast<float>(state.scale), static_cast<float>(state.good_steps),
                        static_cast<float>(state.skips_in_row), static_cast<float>(state.skips)};
  copy_from_host(device_.compute(), numbers.data(), state_);
}

LossScaleState LossScale::download() const {
  Numbers numbers{};
  copy_to_host(device_.compute(), state_, numbers.data());
  return {.scale = static_cast<double>(numbers[0]),
          .good_steps = static_cast<std::int64_t>(numbers[1]),
          .skips_in_row = static_cast<std::int64_t>(numbers[2]),
          .skips = static_cast<std::int64_t>(numbers[3])};
}

}  // namespace ringlet::train
