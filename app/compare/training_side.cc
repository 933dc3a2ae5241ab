// The side of a file of `ringlet bench train --json`.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "app/compare/side.h"
#include "app/compare/training_document.h"

namespace ringlet::app::compare {

namespace {

using nlohmann::json;

constexpr const char* kSamples = "samples_per_second";
constexpr std::array kParts{"data", "forward", "backward", "sync", "update"};

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

}  // namespace

Side training_side(const std::filesystem::path& file) {
  const json document = training_document(file);
  if (document.contains("scaling")) return scaling_side(file, document);
  Side side{.file = file.string(), .kind = Kind::training};
  try {
    const bool has_parts = !word_in(document, "device").starts_with("cuda");
    const std::vector<Speed> rounds = rounds_in(document, has_parts);
    side.traits = training_traits(document);
    side.rows = rows_of(speed_in(document, has_parts), rounds);
    std::string why = word_in(document, "why_not");  // said only of what does not count
    if (why.empty() && word_in(document, "counts") == "false") why = "the benchmark says so";
    for (Row& row : side.rows) row.why_not = why;
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
