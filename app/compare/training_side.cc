// The side of a file of `ringlet bench train --json`.
#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "app/compare/side.h"
#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "base/one_line.h"

namespace ringlet::app::compare {

namespace {

using nlohmann::json;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20;
constexpr const char* kSamples = "samples_per_second";
constexpr std::array kParts{"data", "forward", "backward", "sync", "update"};

[[noreturn]] void refuse_training(const std::filesystem::path& file, const std::string& why) {
  throw FileError(fmt::format("{}: {}; it should hold what 'ringlet bench train --json' writes",
                              file.string(), why));
}

/// Throws std::runtime_error naming the field.
double number_in(const json& object, const char* name) {
  double number = 0;
  read_field(object, name, number);
  if (number < 0) throw std::runtime_error(fmt::format("'{}' is below 0", name));
  return number;
}

/// Samples a second, and the seconds a step of each part: of all steps, or of a round.
struct Speed {
  double samples = 0;
  std::array<double, kParts.size()> parts{};
};

/// Throws std::runtime_error naming the field. A GPU's host sees no parts, so they are not asked.
Speed speed_in(const json& object, bool has_parts) {
  if (!object.is_object()) throw std::runtime_error("it is no object");
  Speed speed{number_in(object, kSamples)};
  if (speed.samples == 0) {
    throw std::runtime_error(fmt::format("'{}' is not above 0", kSamples));
  }
  if (!has_parts) return speed;
  const json parts = object.value("phase_seconds", json::object());
  for (std::size_t i = 0; i < kParts.size(); ++i) speed.parts[i] = number_in(parts, kParts[i]);
  return speed;
}

std::vector<Speed> rounds_in(const json& document, bool has_parts) {
  std::vector<Speed> rounds;
  if (!document.contains("rounds")) return rounds;
  if (!document.at("rounds").is_array()) throw std::runtime_error("'rounds' is not a list");
  for (const json& round : document.at("rounds")) {
    try {
      rounds.push_back(speed_in(round, has_parts));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(
          fmt::format("row {} of 'rounds': {}", rounds.size() + 1, error.what()));
    }
  }
  return rounds;
}

/// Samples a second, and the parts of a step that took any time.
std::vector<Row> rows_of(const Speed& all, const std::vector<Speed>& rounds) {
  std::vector<double> values;
  for (const Speed& round : rounds) values.push_back(round.samples);
  std::vector<Row> rows{
      {.name = "samples/s", .is_rate = true, .figure = figure_of(all.samples, values)}};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (all.parts[i] == 0) continue;
    values.clear();
    for (const Speed& round : rounds) values.push_back(round.parts[i]);
    rows.push_back({.name = fmt::format("{} (ms)", kParts[i]),
                    .figure = figure_of(1e3 * all.parts[i], values)});
  }
  return rows;
}

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
                                   {"optimizer", "optimizer"}})}};
}

/// The document, where `text` is JSON and an object.
json document_in(const std::filesystem::path& file) {
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

}  // namespace

Side training_side(const std::filesystem::path& file) {
  const json document = document_in(file);
  Side side{.file = file.string(), .kind = Kind::training};
  try {
    const bool has_parts = !word_in(document, "device").starts_with("cuda");
    const std::vector<Speed> rounds = rounds_in(document, has_parts);
    side.traits = training_traits(document);
    side.rows = rows_of(speed_in(document, has_parts), rounds);
    Line line{.id = "speed", .title = "Samples a second", .over = "round"};
    for (const Speed& round : rounds) {
      line.curve.add(static_cast<double>(line.curve.size() + 1), round.samples);
    }
    if (line.curve.size() > 0) side.lines.push_back(std::move(line));
  } catch (const std::runtime_error& error) {
    refuse_training(file, error.what());
  }
  return side;
}

}  // namespace ringlet::app::compare
