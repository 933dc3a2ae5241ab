// Arithmetic: what decides the last bits of the numbers that a process computes, beside the recipe.
// Exact mode writes the same bytes where all processes have the same one. It is about what runs,
// not about what a processor is called: RINGLET_ISA and OPENBLAS_CORETYPE choose less than it has.
#pragma once

#include <string>
#include <vector>

#include "train/recipe/options.h"

namespace ringlet::train {

struct Arithmetic {
  std::string instruction_set{};  ///< of our kernels, as RINGLET_ISA names it; "neon on ARM"
  std::string openblas{};         ///< kernels of products, as OPENBLAS_CORETYPE names them
  std::string bf16{};             ///< what multiplies bf16; empty where nothing does
  std::string gpus{};             ///< where these compute, their names, and nothing else
  std::string compiler{};         ///< of the program's kernels, with its version: "GNU 12.2.0"
  bool operator==(const Arithmetic&) const = default;
};

/// Of this process. `compiler`: what compiled the program.
Arithmetic arithmetic_here(const Execution& execution, Precision precision,
                           const std::string& compiler);

/// As one text for other processes, and back.
std::string to_text(const Arithmetic& arithmetic);
Arithmetic arithmetic_of(const std::string& text);

/// What to tell the user of a run in exact mode whose processes compute differently: who computes
/// how, and what makes them alike. Empty where they are.
std::string warning_of_unlike(const std::vector<Arithmetic>& of_process);
/// The same for a run that goes on, of which it is known how it computed `before`. Fields that are
/// empty there are not known.
std::string warning_of_change(const Arithmetic& before, const Arithmetic& now);

}  // namespace ringlet::train
