// What the folders of a run have in common.
#pragma once

#include <filesystem>

#include "app/inspect/document.h"

namespace ringlet::app::inspect {

/// Adds what the state in `folder` (which holds state.json) says, and whether a run can go on from
/// it. Reads only: what a killed writer left is not tidied up. Throws FileError.
void add_state(Document& document, const std::filesystem::path& folder);

/// Every file below `folder` with its size, folders in order of their names.
Table file_table(const std::filesystem::path& folder);

}  // namespace ringlet::app::inspect
