#include "app/compare/training_document.h"

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::app::compare {

using nlohmann::json;

namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20;

/// "with a 2 b 3" of the named fields that are there.
std::string settings_words(const char* preposition, const json& document,
                           std::initializer_list<std::pair<const char*, const char*>> fields) {
  std::string words;
  for (const auto& [word, field] : fields) {
    const std::string value = word_in(document, field);
    if (!value.empty()) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", word, value);
  }
  return words.empty() ? "" : fmt::format("{} {}", preposition, words);
}

}  // namespace

void refuse_training(const std::filesystem::path& file, const std::string& why) {
  throw FileError(fmt::format("{}: {}; it should hold what 'ringlet bench train --json' writes",
                              file.string(), why));
}

double number_in(const json& object, const char* name) {
  double number = 0;
  read_field(object, name, number);
  if (number < 0) throw std::runtime_error(fmt::format("'{}' is below 0", name));
  return number;
}

std::vector<Trait> training_traits(const json& document) {
  const json machine = document.value("machine", json::object());
  json place = machine.is_object() ? machine : json::object();
  if (word_in(place, "instruction_set").empty() && !word_in(document, "isa").empty()) {
    place["instruction_set"] = document.at("isa");
  }
  const std::string version = word_in(place, "ringlet");
  return {
      {"machines", machine_words(place)},
      {"builds", build_words(document)},
      {"versions", version.empty() ? "" : "by ringlet " + version},
      {"devices", settings_words("on", document, {{"device", "device"}})},
      {"ranks",
       settings_words("with", document,
                      {{"replicas", "replicas"}, {"stages", "stages"}, {"threads", "threads"}})},
      {"types",
       settings_words("with", document, {{"precision", "precision"}, {"gradients", "grad_dtype"}})},
      {"models", settings_words("of", document,
                                {{"model", "model"}, {"data", "data"}, {"batch", "batch_size"}})},
      {"settings", settings_words("with", document,
                                  {{"sync", "sync"},
                                   {"layout", "layout"},
                                   {"exact", "exact"},
                                   {"graph", "graph"},
                                   {"optimizer", "optimizer"}})},
      use_of_cores(bench::shared_core_in(document))};
}

json training_document(const std::filesystem::path& file) {
  const std::string text = read_text(file, kMostBytes);
  if (const auto broken = where_json_breaks(text)) {
    const std::string field =
        broken->way.empty() ? "this" : fmt::format("'{}'", broken->way.back());
    refuse_training(file,
                    fmt::format("{} is not valid JSON ({})", on_one_line(field, 60), broken->why));
  }
  json document = json_or_discarded(text);
  if (!document.is_object()) refuse_training(file, "it is no object");
  return document;
}

}  // namespace ringlet::app::compare
