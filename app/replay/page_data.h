// What the page's script is given of a replay: rows of numbers, as moment.js takes them apart.
#pragma once

#include <nlohmann/json.hpp>

#include "app/replay/replay.h"

namespace ringlet::app::replay {

nlohmann::json data_for_script(const Replay& replay);

}  // namespace ringlet::app::replay
