#include "train/loop/step_inputs.h"

#include <array>

namespace ringlet::train {

StepInputs::StepInputs(Device& device)
    : device_(device), numbers_(device, {kEnd}), uploader_(device, numbers_.view().bytes()) {}

void StepInputs::upload(const Rates& rates, std::int64_t global_samples, std::int64_t own_samples,
                        bool stop_wished) {
  const std::array<float, kEnd> host{1.0F / static_cast<float>(global_samples),
                                     static_cast<float>(rates.lr),
                                     static_cast<float>(rates.momentum),
                                     0,
                                     static_cast<float>(own_samples),
                                     stop_wished ? 1.0F : 0.0F,
                                     0};
  uploader_.upload(device_.compute(), host.data(), numbers_);
}

}  // namespace ringlet::train
