#include "kernels/cuda/engine_note.h"

#include <cstdint>

namespace ringlet::cudnn_graph {

namespace {

constexpr struct {
  cudnnBackendNumericalNote_t note;
  const char* name;
} kNotes[] = {
    {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, "tensor cores"},
    {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, "rounds its factors"},
    {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, "narrow sums"},
    {CUDNN_NUMERICAL_NOTE_FFT, "FFT"},
    {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, "not deterministic"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD, "Winograd"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, "tiles of 4x4"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, "tiles of 6x6"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, "tiles of 13x13"},
};

}  // namespace

std::string describe(const Conv2dKey& key, const Plan& plan) {
  const std::int64_t number = engine_number(plan.engine_config);
  std::string line = describe(key) + (number < 0 ? ": an engine" : ": engine ");
  if (number >= 0) line += std::to_string(number);
  const std::uint32_t notes = numerical_notes(plan.engine_config);
  for (const auto& [note, name] : kNotes) {
    if ((notes & 1U << note) != 0) line += std::string(", ") + name;
  }
  return line + ", " + std::to_string(plan.workspace) + " bytes of scratch memory";
}

}  // namespace ringlet::cudnn_graph
