// The report's times: where the seconds of training went, by epoch for one run, by run for several.
#pragma once

#include <string>
#include <vector>

#include "app/report/run_folder.h"

namespace ringlet::app::report {

/// Bars with the id time.
std::string time_section(const std::vector<RunFolder>& runs);

}  // namespace ringlet::app::report
