// The report's head: what was trained and what came of it. One run has its numbers side by side,
// several a table, whose colours are those of the curves.
#pragma once

#include <string>
#include <vector>

#include "app/report/run_folder.h"

namespace ringlet::app::report {

/// "lenet on fashion-mnist", for the page's title as well.
std::string title_of(const std::vector<RunFolder>& runs);

std::string heading(const std::vector<RunFolder>& runs);

}  // namespace ringlet::app::report
