#include "train/pipeline/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringlet::train {

namespace {

/// "12.3", "1.23", "123"
std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 9.995 ? 1 : 2);
}

/// "64", not "64.0".
std::string without_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

double sum_of_passes(const std::vector<StageRow>& rows) {
  double sum = 0;
  for (const StageRow& row : rows) sum += row.forward + row.backward;
  return sum;
}

/// What costs are multiplied with to be shown: milliseconds, or percent of all.
double shown(const std::vector<StageRow>& rows, bool measured) {
  const double all = sum_of_passes(rows);
  if (measured) return 1e3;
  return all > 0 ? 100 / all : 0;
}

}  // namespace

std::string count_in_words(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count < 1000) return fmt::format("{}", count);
  if (value < 999.5e3) return three_digits(1e-3 * value) + " K";
  if (value < 999.5e6) return three_digits(1e-6 * value) + " M";
  return three_digits(1e-9 * value) + " G";
}

std::string bytes_in_words(std::int64_t bytes) {
  constexpr double kKiB = 1024, kMiB = kKiB * kKiB, kGiB = kMiB * kKiB;
  const auto value = static_cast<double>(bytes);
  if (value < kKiB) return fmt::format("{} bytes", bytes);
  if (value < 999.5 * kKiB) return without_zeros(three_digits(value / kKiB)) + " KiB";
  if (value < 999.5 * kMiB) return without_zeros(three_digits(value / kMiB)) + " MiB";
  return without_zeros(three_digits(value / kGiB)) + " GiB";
}

StageTable stage_table(const std::vector<StageRow>& rows, bool measured) {
  StageTable table{.heads = {"stage", "layers", "device", measured ? "ms F / B" : "% F / B",
                             "parameters", "held", "activations", "in all"}};
  const double factor = shown(rows, measured);
  for (const StageRow& row : rows) {
    table.rows.push_back({fmt::format("{}", row.stage), row.layers, row.device,
                          fmt::format("{} / {}", three_digits(factor * row.forward),
                                      three_digits(factor * row.backward)),
                          count_in_words(row.parameters),
                          fmt::format("{} of {}", row.held, row.micro_batches),
                          bytes_in_words(row.activation_bytes()), bytes_in_words(row.bytes())});
  }
  return table;
}

std::string to_text(const StageTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& head : table.heads) widths.push_back(head.size());
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
      text += fmt::format("{:<{}}  ", cells[i], widths[i]);
    }
    return text + cells.back() + "\n";
  };
  std::string text = line(table.heads);
  for (const auto& row : table.rows) text += line(row);
  return text;
}

nlohmann::json to_json(const std::vector<StageRow>& rows, bool measured) {
  nlohmann::json list = nlohmann::json::array();
  const double all = sum_of_passes(rows);
  for (const StageRow& row : rows) {
    nlohmann::json object{{"stage", row.stage},
                          {"layers", row.layers},
                          {"device", row.device},
                          {"parameters", row.parameters},
                          {"held", row.held},
                          {"pass_bytes", row.pass_bytes},
                          {"standing_bytes", row.standing_bytes},
                          {"evaluation_bytes", row.evaluation_bytes},
                          {"scratch_bytes", row.scratch_bytes},
                          {"bytes", row.bytes()}};
    if (measured) {
      object["forward_seconds"] = row.forward;
      object["backward_seconds"] = row.backward;
      object["update_seconds"] = row.update;
    } else {
      object["forward_share"] = all > 0 ? row.forward / all : 0;
      object["backward_share"] = all > 0 ? row.backward / all : 0;
    }
    if (row.capacity > 0) {
      object["device_bytes"] = row.capacity;
      object["fits"] = row.fits();
    }
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace ringlet::train
