// The state from which a run goes on by itself, after whatever end (--resume auto).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/files/state.h"

namespace ringlet::train {

struct LastState {
  SavedState state;
  std::string warning{};  ///< what is wrong with a newer one; empty: there is none
};

/// The newest state of OUT that is whole (require_whole). Changes nothing there. Nothing where OUT
/// has no state. Throws FileError where it has, and none of them is whole.
std::optional<LastState> find_last_state(const std::filesystem::path& out);

/// Makes a state that was found behind a broken one OUT/state again. The broken one becomes
/// OUT/state.broken. Throws FileError.
void restore(LastState& last, const std::filesystem::path& out);

}  // namespace ringlet::train
