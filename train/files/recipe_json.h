// A recipe as JSON: for state folders, for comparing plans between ranks, for run folders.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/options.h"

namespace ringlet::train {

nlohmann::json to_json(const Recipe& recipe);

/// Throws FileError naming `source` for a field that is missing, unknown or of the wrong type.
Recipe recipe_from_json(const nlohmann::json& json, const std::string& source);

}  // namespace ringlet::train
