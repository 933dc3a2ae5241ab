// A document for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/inspect/document.h"
#include "base/files/json_text.h"
#include "train/telemetry/console.h"

namespace ringlet::app::inspect {
namespace {

std::string in_bytes(std::int64_t bytes) {
  constexpr double kStep = 1024;
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= kStep && unit + 1 < std::size(units); ++unit) amount /= kStep;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", amount, units[unit]);
}

std::string in_time(double microseconds) {
  constexpr double kThousand = 1e3, kMillion = 1e6;
  if (microseconds < kThousand) return fmt::format("{:.1f} us", microseconds);
  if (microseconds < kMillion) return fmt::format("{:.2f} ms", microseconds / kThousand);
  return fmt::format("{:.3f} s", microseconds / kMillion);
}

std::string in_words(std::int64_t number, Form form) {
  if (form == Form::bytes) return in_bytes(number);
  return form == Form::digits ? fmt::format("{}", number) : train::with_commas(number);
}

std::string in_words(double number, Form form) {
  constexpr double kPercent = 100;
  if (std::isnan(number)) return "-";
  if (form == Form::share) return fmt::format("{:.1f} %", kPercent * number);
  if (form == Form::microseconds) return in_time(number);
  return fmt::format("{:.6g}", number);
}

}  // namespace

std::string in_words(const Value& value) {
  struct Writer {
    Form form;
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(bool yes) const { return yes ? "yes" : "no"; }
    std::string operator()(std::int64_t number) const { return in_words(number, form); }
    std::string operator()(double number) const { return in_words(number, form); }
    std::string operator()(const std::string& text) const { return on_one_line(text); }
    std::string operator()(const Value::Sizes& sizes) const {
      return fmt::format("[{}]", fmt::join(sizes, ", "));
    }
  };
  return std::visit(Writer{value.form}, value.data);
}

namespace {

bool is_text(const Value& value) {
  return std::holds_alternative<std::string>(value.data) ||
         std::holds_alternative<Value::Sizes>(value.data);
}

/// Columns as wide as they need; numbers to the right, words to the left.
std::string text_of(const Table& table) {
  std::vector<std::vector<std::string>> cells{table.columns};
  for (const auto& row : table.rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const Value& value : row) line.push_back(in_words(value));
  }
  std::vector<std::size_t> widths(table.columns.size());
  std::vector<bool> left(table.columns.size());
  for (std::size_t c = 0; c < widths.size(); ++c) {
    for (const auto& line : cells) widths[c] = std::max(widths[c], line[c].size());
    left[c] = std::any_of(table.rows.begin(), table.rows.end(),
                          [c](const auto& row) { return is_text(row[c]); });
  }
  std::string text;
  for (const auto& line : cells) {
    std::string shown;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      shown += left[c] ? fmt::format("  {:<{}}", line[c], widths[c])
                       : fmt::format("  {:>{}}", line[c], widths[c]);
    }
    text.append(shown, 0, shown.find_last_not_of(' ') + 1).append("\n");
  }
  return text;
}

}  // namespace

std::string to_text(const Document& document) {
  std::string text = fmt::format("{}: {}\n", on_one_line(document.path), document.format);
  std::size_t width = 0;
  for (const Fact& fact : document.facts) width = std::max(width, fact.name.size());
  for (const Fact& fact : document.facts) {
    text += fmt::format("  {:<{}}  {}\n", fact.name, width, in_words(fact.value));
  }
  for (const Table& table : document.tables) {
    if (!table.rows.empty()) text.append("\n").append(text_of(table));
  }
  for (const std::string& picture : document.pictures) text.append("\n").append(picture);
  for (const std::string& warning : document.warnings) {
    text += fmt::format("  warning: {}\n", on_one_line(warning));
  }
  return text;
}

}  // namespace ringlet::app::inspect
