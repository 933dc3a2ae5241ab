#include "train/loop/step_inputs.h"

#include <algorithm>
#include <array>

namespace ringlet::train {

StepInputs::StepInputs(Device& device)
    : device_(device), numbers_(device, {kEnd}), uploader_(device, numbers_.view().bytes()) {}

void StepInputs::upload(const StepRates& rates, std::int64_t global_samples,
                        std::int64_t own_samples, bool stop_wished) {
  std::array<float, kEnd> host{
      1.0F / static_cast<float>(global_samples),
  };
  std::copy(rates.begin(), rates.end(), host.begin() + kRates);
  host[kCounts] = static_cast<float>(own_samples);
  host[kCounts + 1] = stop_wished ? 1.0F : 0.0F;
  uploader_.upload(device_.compute(), host.data(), numbers_);
}

}  // namespace ringlet::train
