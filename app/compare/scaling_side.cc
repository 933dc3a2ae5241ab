// The side of a file of `ringlet bench train --replicas 1,2 --json`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/compare/training_document.h"
#include "base/files/json_fields.h"
#include "bench/training/scaling.h"

namespace ringlet::app::compare {

namespace {

using nlohmann::json;

constexpr const char* kRate = "samples_per_second";

double above_0(double number, const char* name) {
  if (number > 0) return number;
  throw std::runtime_error(fmt::format("'{}' is not above 0", name));
}

/// The object of that name. Throws std::runtime_error.
const json& object_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) {
    throw std::runtime_error(fmt::format("'{}' is no object", name));
  }
  return *found;
}

/// The list of that name, whose entries are objects. Throws std::runtime_error.
const json& list_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array() || found->empty()) {
    throw std::runtime_error(fmt::format("'{}' is no list of rows", name));
  }
  for (const json& entry : *found) {
    if (!entry.is_object())
      throw std::runtime_error(fmt::format("a row of '{}' is no object", name));
  }
  return *found;
}

Figure rate_in(const json& row) {
  const json& rate = object_in(row, kRate);
  Figure figure{above_0(number_in(rate, "value"), kRate)};
  if (!rate.contains("low") || rate.at("low").is_null()) return figure;
  figure.low = above_0(number_in(rate, "low"), "low");
  figure.high = number_in(rate, "high");
  if (figure.low > figure.value || figure.high < figure.value) {
    throw std::runtime_error("'value' does not lie between 'low' and 'high'");
  }
  return figure;
}

/// The parts of a step that took any time, with the intervals that the rounds give.
std::vector<Row> parts_in(const json& row, const Row& like) {
  std::vector<Row> rows;
  if (!row.contains("phase_seconds")) return rows;  // of a GPU
  const json &parts = object_in(row, "phase_seconds"), &rounds = list_in(row, "rounds");
  for (const bench::ScalingPart& part : bench::kScalingParts) {
    const double seconds = number_in(parts, part.key);
    const bool is_part = part.seconds != &bench::ScalingParts::between;  // next to nothing
    if (!is_part || seconds == 0) continue;
    std::vector<double> values;
    for (const json& round : rounds) {
      values.push_back(number_in(object_in(round, "phase_seconds"), part.key));
    }
    rows.push_back({.group = like.group,
                    .name = fmt::format("{} (ms)", part.key),
                    .figure = figure_of(1e3 * seconds, values),
                    .why_not = like.why_not,
                    .of = like.of});
  }
  return rows;
}

/// Adds the rows of one number of replicas, and a point to the line.
void add_replicas(Side& side, Line& line, const json& row, std::set<int>& seen) {
  int replicas = 0;
  bool counts = false;
  read_field(row, "replicas", replicas);
  read_field(row, "counts", counts);
  if (!seen.insert(replicas).second) {
    throw std::runtime_error(fmt::format("{} replicas are there twice", replicas));
  }
  Row rate{.group = fmt::format("{} replica{}", replicas, replicas == 1 ? "" : "s"),
           .name = "samples/s",
           .is_rate = true,
           .figure = rate_in(row)};
  rate.of = "of " + rate.group;
  if (!counts) {
    const std::string why = word_in(row, "why_not");
    rate.why_not = why.empty() ? "the benchmark says so" : why;
  }
  line.curve.add(replicas, rate.figure.value);
  std::vector<Row> parts = parts_in(row, rate);
  side.rows.push_back(std::move(rate));
  for (Row& part : parts) side.rows.push_back(std::move(part));
}

}  // namespace

Side scaling_side(const std::filesystem::path& file, const json& document) {
  Side side{.file = file.string(), .kind = Kind::scaling};
  try {
    const json& scaling = object_in(document, "scaling");
    side.traits = training_traits(document);
    const std::string batch = word_in(scaling, "batch"), as = word_in(document, "replicas_as");
    side.traits.push_back({"batches", batch.empty() ? "" : "with a batch that is " + batch});
    side.traits.push_back({"replicas", as.empty() ? "" : "with replicas as " + as});
    Line line{.id = "rate", .title = "Samples a second", .over = "replicas"};
    std::set<int> seen;
    std::size_t number = 0;
    for (const json& row : list_in(scaling, "rows")) {
      ++number;
      try {
        add_replicas(side, line, row, seen);
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("row {} of 'rows': {}", number, error.what()));
      }
    }
    side.lines.push_back(std::move(line));
  } catch (const std::runtime_error& error) {
    refuse_training(file, error.what());
  }
  return side;
}

}  // namespace ringlet::app::compare
