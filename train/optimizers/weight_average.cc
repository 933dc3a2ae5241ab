#include "train/optimizers/weight_average.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/ema.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kMostAside = 1 << 20;  // numbers: room for all of them would cost an arena

}  // namespace

WeightAverage::WeightAverage(Device& device, const nn::Parameters& parameters, double decay,
                             const View& weights, const View& buffers)
    : device_(device),
      parameters_(parameters),
      decay_(decay),
      weights_(weights),
      buffers_(buffers),
      aside_(device, {std::min(kMostAside, std::max(parameters.values().count(),
                                                    parameters.buffers().count()))}) {}

double WeightAverage::share_of(std::int64_t steps) const {
  constexpr double kSlow = 10;
  const auto t = static_cast<double>(steps);
  return 1 - std::min(decay_, (1 + t) / (kSlow + t));
}

void WeightAverage::begin() {
  Stream& stream = device_.compute();
  copy(stream, parameters_.values(), weights_);
  if (!buffers_.absent()) copy(stream, parameters_.buffers(), buffers_);
}

void WeightAverage::update(const ConstView& share, const ConstView& scale) {
  Stream& stream = device_.compute();
  ema_update(stream, share, parameters_.values(), weights_, scale);
  if (!buffers_.absent()) ema_update(stream, share, parameters_.buffers(), buffers_, scale);
}

void WeightAverage::swap() {
  swap(parameters_.values(), weights_);
  if (!buffers_.absent()) swap(parameters_.buffers(), buffers_);
}

void WeightAverage::swap(const View& one, const View& other) {
  Stream& stream = device_.compute();
  const std::int64_t most = aside_.shape()[0];
  for (std::int64_t begin = 0; begin < one.count(); begin += most) {
    const std::int64_t end = std::min(one.count(), begin + most);
    const View aside = aside_.view().slice(0, end - begin);
    copy(stream, one.slice(begin, end), aside);
    copy(stream, other.slice(begin, end), one.slice(begin, end));
    copy(stream, aside, other.slice(begin, end));
  }
}

}  // namespace ringlet::train
