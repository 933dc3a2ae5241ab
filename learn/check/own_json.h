// JSON that a learner's own run has written.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "learn/check/answers.h"

namespace ringlet::learn {

/// Throws Wrong, which says `remedy`, where the file is not there or is no JSON.
inline nlohmann::json own_json(const std::filesystem::path& file, const std::string& remedy) {
  std::ifstream input(file);
  if (!input) {
    throw Wrong(Verdict::not_written,
                fmt::format("there is no {} yet; {}", file.filename().string(), remedy));
  }
  nlohmann::json json = nlohmann::json::parse(input, nullptr, false);
  if (json.is_discarded()) {
    throw Wrong(Verdict::no_build,
                fmt::format("{} is no JSON; {}", file.filename().string(), remedy));
  }
  return json;
}

}  // namespace ringlet::learn
