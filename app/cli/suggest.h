// Guesses what word the user meant: a misspelt one, or another program's (torchrun, mpirun,
// nccl-tests, PyTorch's examples).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlet::app {

/// The entry of `known` that is nearest to `word` (insertions, deletions, replacements and swaps of
/// neighbours), or empty when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// What to write instead of `word`: "--device cuda --replicas N" for "--gpus". Empty where no
/// other program calls it so, or where `known`, the words that are right here, lacks ours.
std::string ours_for(std::string_view word, const std::vector<std::string>& known);

}  // namespace ringlet::app
