// The folder that keeps a run where the user names none.
#pragma once

#include <filesystem>
#include <string>

namespace ringlet::app {

/// Makes ROOT/MODEL-N and returns its path. N counts up, beyond the largest that is there: runs
/// stand in the order in which they began, and two that begin at once get a folder each. Throws
/// FileError.
std::filesystem::path make_run_folder(const std::filesystem::path& root, const std::string& model);

}  // namespace ringlet::app
