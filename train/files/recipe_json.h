// A recipe as JSON: for state folders, for comparing plans between ranks, for run folders.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/recipe/options.h"

namespace ringlet::train {

/// For files. Fields that older versions do not know are left out at their defaults, so that those
/// versions can read what they could have written.
nlohmann::json to_json(const Recipe& recipe);

/// Every field by its name.
nlohmann::json all_fields(const Recipe& recipe);

/// Throws FileError naming `source` for a field that is missing, unknown or of the wrong type.
Recipe recipe_from_json(const nlohmann::json& json, const std::string& source);

}  // namespace ringlet::train
