// What the files of `ringlet bench train --json` have in common, whether of one number of replicas
// or of several.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/compare/side.h"

namespace ringlet::app::compare {

/// The object in it. Throws FileError.
nlohmann::json training_document(const std::filesystem::path& file);

/// Throws FileError "FILE: WHY; it should hold what 'ringlet bench train --json' writes".
[[noreturn]] void refuse_training(const std::filesystem::path& file, const std::string& why);

/// A number of 0 or more. Throws std::runtime_error naming the field.
double number_in(const nlohmann::json& object, const char* name);

std::vector<Trait> training_traits(const nlohmann::json& document);

/// By training_side(), of a document that has "scaling": a row for the samples a second of each
/// number of replicas, and for each part of a step that took any time.
Side scaling_side(const std::filesystem::path& file, const nlohmann::json& document);

}  // namespace ringlet::app::compare
