// How a run was set up (config.toml as it is, else the recipe of its state), and the machine of
// run.json.
#pragma once

#include <string>
#include <vector>

#include "app/report/run_folder.h"

namespace ringlet::app::report {

std::string setup_section(const std::vector<RunFolder>& runs);

}  // namespace ringlet::app::report
