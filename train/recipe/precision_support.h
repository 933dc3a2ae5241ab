// Which devices compute in which precision.
#pragma once

#include <string>
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

/// Why a processor would compute a model of `parameters` in `layout` through f32, slower than in
/// f32; empty where it would not, and where `device` is a GPU or `precision` is not narrow.
/// `emulate`: Execution::emulate_precision, which takes that on.
std::string why_through_f32(Precision precision, DeviceKind device, Layout layout,
                            const std::vector<nn::Parameter*>& parameters, bool emulate);

/// Throws ContractError, naming the remedy, where `device` does not compute so, or only slower than
/// in f32, as above.
void require_precision(Precision precision, DeviceKind device, Layout layout,
                       const std::vector<nn::Parameter*>& parameters, bool emulate);

}  // namespace ringlet::train
