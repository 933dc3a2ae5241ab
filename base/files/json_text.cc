#include "base/files/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files/atomic_file.h"

namespace ringlet {

namespace {

using nlohmann::json;

/// The library's words without its name and number.
std::string reason(const std::exception& error) {
  constexpr std::size_t kShown = 160;  // they quote what was read
  const std::string text = error.what();
  const auto end_of_number = text.find("] ");
  return on_one_line(end_of_number == text.npos ? text : text.substr(end_of_number + 2), kShown);
}

/// As deep as anybody's file of figures may nest; those of ours have six levels. The library's own
/// functions call themselves for each level, and a deep text would take all of the stack.
constexpr int kDeepest = 100;

std::string too_deep(int limit) { return fmt::format("nested deeper than {}", limit); }

class NestsTooDeeply : public json::exception {
 public:
  NestsTooDeeply() : exception(0, too_deep(kDeepest).c_str()) {}
};

/// Notes the way to the value that is being read, and where the text breaks.
class WayReader : public nlohmann::json_sax<json> {
 public:
  std::optional<JsonBreak> found;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(json::number_integer_t) override { return value(); }
  bool number_unsigned(json::number_unsigned_t) override { return value(); }
  bool number_float(json::number_float_t, const json::string_t&) override { return value(); }
  bool string(json::string_t&) override { return value(); }
  bool binary(json::binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(false); }
  bool key(json::string_t& name) override {
    levels_.back().name = name;
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    return breaks(reason(error));
  }

 private:
  struct Level {
    bool is_list;
    std::size_t entry = 0;  ///< the next one of a list
    std::string name = {};  ///< the last one of an object
  };

  bool breaks(std::string why) {
    found = JsonBreak{{}, std::move(why)};
    for (const Level& level : levels_) {
      const std::string step = level.is_list ? std::to_string(level.entry) : level.name;
      if (!step.empty()) found->way.push_back(step);
    }
    return false;
  }
  bool open(bool is_list) {
    if (std::ssize(levels_) == kDeepest) return breaks(too_deep(kDeepest));
    levels_.push_back({is_list});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  /// A value has ended.
  bool value() {
    if (!levels_.empty()) ++levels_.back().entry;
    return true;
  }

  std::vector<Level> levels_;
};

}  // namespace

std::optional<JsonBreak> where_json_breaks(std::string_view text) {
  WayReader reader;
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.found;
}

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
  if (json_depth(text) > kDeepest) throw NestsTooDeeply();
  return nlohmann::json::parse(text.begin(), text.end());
}

nlohmann::json json_or_discarded(std::string_view text) {
  if (json_depth(text) > kDeepest) return json::value_t::discarded;
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
}

nlohmann::json parse_json_text(const std::string& source, std::string_view text, int max_depth) {
  const auto fail = [&](const std::string& why) {
    throw FileError(fmt::format("{} is not valid JSON ({}); the file is damaged", source, why));
  };
  if (text.find('\0') != std::string_view::npos) fail("a zero byte");
  if (json_depth(text) > max_depth) fail(too_deep(max_depth));
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
