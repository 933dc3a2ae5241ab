// Which devices compute in which precision.
#pragma once

#include <vector>

#include "base/instruction_set.h"
#include "kernels/device.h"
#include "kernels/tensor.h"
#include "nn/parameter.h"
#include "train/recipe/precision.h"

namespace ringlet::train {

/// What this processor multiplies bf16 with (DeviceOptions::bf16). To emulate is to compute through
/// f32, alike on all processors.
Bf16Products bf16_products(bool emulate);

/// Throws ContractError, naming the remedy, where `device` does not compute so, or only slower than
/// in f32: a processor with a model of `parameters` in `layout`. `emulate`:
/// Execution::emulate_precision.
void require_precision(Precision precision, DeviceKind device, Layout layout,
                       const std::vector<nn::Parameter*>& parameters, bool emulate);

}  // namespace ringlet::train
