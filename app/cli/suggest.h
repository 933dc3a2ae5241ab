// Guesses what word the user meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlet::app {

/// The entry of `known` that is nearest to `word` (insertions, deletions, replacements and swaps of
/// neighbours), or empty when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace ringlet::app
