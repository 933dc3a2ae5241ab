// Precision: the type of activations and of what products multiply. Parameters, their gradients,
// the optimiser's state, norms, losses and all sums are f32 in any (docs/precision.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "train/recipe/option.h"

namespace ringlet::train {

enum class Precision : std::uint8_t {
  f32,
  tf32,  ///< GPUs: factors of products are rounded to 11 bits; elsewhere f32
  bf16,
  f16,  ///< with a scale of the loss that follows what f16 can hold (train/loop/loss_scale.h)
  /// Of a run that begins: make_run_setup() takes f32 or bf16, whichever is faster where it runs
  /// (train/setup/precision_trial.h). No state has it, and only a TrainOptions may.
  automatic
};

const char* name_of(Precision precision);    ///< "bf16"
std::vector<std::string> precision_names();  ///< all but that of `automatic`
/// The name of `automatic`, which parse_precision() does not know.
inline constexpr const char* kAutomaticPrecision = "auto";
/// Throws ContractError naming the choices.
Precision parse_precision(std::string_view name);

/// The type of activations.
DType activations_of(Precision precision);
inline bool is_narrow(Precision precision) { return is_narrow(activations_of(precision)); }

/// Whether a GPU multiplies it on tensor cores.
inline bool uses_tensor_cores(Precision precision) { return precision != Precision::f32; }

/// A part of a recipe.
struct PrecisionSpec {
  Precision precision = Precision::f32;  ///< of activations and products

  bool operator==(const PrecisionSpec&) const = default;
};

std::vector<Option<PrecisionSpec>> precision_options();

}  // namespace ringlet::train
