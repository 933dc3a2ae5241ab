#include "base/files/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"

namespace ringlet {

int json_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // what is escaped ends no string
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end());
}

nlohmann::json json_or_discarded(std::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
}

nlohmann::json parse_json_text(const std::string& source, std::string_view text, int max_depth) {
  const auto fail = [&](const std::string& why) {
    throw FileError(fmt::format("{} is not valid JSON ({}); the file is damaged", source, why));
  };
  if (text.find('\0') != std::string_view::npos) fail("a zero byte");
  if (json_depth(text) > max_depth) fail(fmt::format("nested deeper than {}", max_depth));
  try {
    return parse_json(text);
  } catch (const nlohmann::json::exception& error) {
    constexpr std::size_t kShown = 400;  // it quotes what it read
    fail(on_one_line(error.what(), kShown));
  }
  return {};
}

std::string row_a_line(const nlohmann::json& document) {
  std::string text;
  for (const auto& [key, value] : document.items()) {
    text += fmt::format("{}{}: ", text.empty() ? "{" : ",\n ", nlohmann::json(key).dump());
    if (!value.is_array() || value.empty()) {
      text += value.dump();
      continue;
    }
    const char* before = "[\n  ";
    for (const nlohmann::json& entry : value) {
      text += before + entry.dump();
      before = ",\n  ";
    }
    text += "]";
  }
  return text.empty() ? "{}\n" : text + "}\n";
}

}  // namespace ringlet
