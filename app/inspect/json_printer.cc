// A document for programs.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/inspect/document.h"

namespace ringlet::app::inspect {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Value& value) {
  struct Writer {
    ordered_json operator()(std::monostate) const { return nullptr; }
    ordered_json operator()(double number) const {
      return std::isfinite(number) ? ordered_json(number) : ordered_json(nullptr);
    }
    ordered_json operator()(bool yes) const { return yes; }
    ordered_json operator()(std::int64_t number) const { return number; }
    ordered_json operator()(const std::string& text) const { return text; }
    ordered_json operator()(const Value::Sizes& sizes) const { return sizes; }
  };
  return std::visit(Writer{}, value.data);
}

/// "data hash" -> "data_hash"
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace

ordered_json to_json(const Document& document) {
  ordered_json json{{"path", document.path}, {"format", document.format}};
  for (const Fact& fact : document.facts) json[key_of(fact.name)] = json_of(fact.value);
  for (const Table& table : document.tables) {
    ordered_json& list = json[key_of(table.name)] = ordered_json::array();
    for (const auto& row : table.rows) {
      ordered_json object = ordered_json::object();
      for (std::size_t c = 0; c < row.size(); ++c) {
        object[key_of(table.columns[c])] = json_of(row[c]);
      }
      list.push_back(std::move(object));
    }
  }
  json["warnings"] = document.warnings;
  return json;
}

}  // namespace ringlet::app::inspect
