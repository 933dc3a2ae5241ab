#include "learn/check/plants.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files/json_text.h"

namespace ringlet::learn {

namespace {

std::string text_of_file(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text) throw ContractError(file + " cannot be read");
  return text.str();
}

}  // namespace

std::vector<Plant> read_plants(const std::string& file) {
  constexpr int kDepth = 2;
  std::vector<Plant> plants;
  for (const auto& entry : parse_json_text(file, text_of_file(file), kDepth)) {
    const auto text = [&](const char* key) { return entry.value(key, std::string()); };
    plants.push_back({text("name"), text("file"), text("find"), text("replace"), text("verdict"),
                      text("words")});
  }
  return plants;
}

std::string planted(const Plant& plant, const std::string& root) {
  std::string text = text_of_file(root + "/" + plant.file);
  const std::size_t at = text.find(plant.find);
  if (at == std::string::npos || text.find(plant.find, at + 1) != std::string::npos) {
    throw ContractError(
        fmt::format("the text of '{}' does not stand in {} exactly once", plant.name, plant.file));
  }
  return text.replace(at, plant.find.size(), plant.replace);
}

}  // namespace ringlet::learn
