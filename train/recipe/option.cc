#include "train/recipe/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ringlet::train {

namespace {

constexpr double kMostWhole = std::numeric_limits<std::int32_t>::max();

double as_number(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> double {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
          return 0;
        } else {
          return static_cast<double>(held);
        }
      },
      value);
}

template <class T>
std::optional<OptionValue> number_in(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return {};
  return value;
}

std::optional<OptionValue> truth_in(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return {};
}

std::string bounds(const NumberRange& range) {
  constexpr NumberRange kAny;
  const bool bounded = range.max < kAny.max;
  if (range.min == kAny.min && !bounded) return "that is finite";
  std::string least = fmt::format("{} {}", range.above_min ? "above" : "of at least", range.min);
  if (range.below_max) return fmt::format("{} and below {}", least, range.max);
  if (range.above_min && bounded) return fmt::format("{} and up to {}", least, range.max);
  if (range.above_min) return least;
  if (range.max == std::numeric_limits<double>::max())
    return fmt::format("of at least {}", range.min);
  return fmt::format("from {} to {}", range.min, range.max);
}

}  // namespace

std::string text_of(const OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

bool NumberRange::holds(double value) const {
  if (!std::isfinite(value) || value < min || value > max) return false;
  const auto held = [this](double number) {
    return as_f32 ? static_cast<double>(static_cast<float>(number)) : number;
  };
  if (value != 0 && held(value) == 0) return false;
  if (above_min && held(value) <= held(min)) return false;
  return !below_max || held(value) < held(max);
}

OptionRow::OptionRow(std::string name, const OptionValue& kind, OptionFacts facts)
    : OptionFacts(std::move(facts)), key(std::move(name)), type(kind.index()) {
  if (std::holds_alternative<std::int64_t>(kind)) range.max = std::min(range.max, kMostWhole);
}

std::string OptionRow::flag_name() const {
  std::string name = flag != nullptr ? flag : key;
  std::replace(name.begin(), name.end(), '_', '-');
  return (is_switch() && form == Switch::off ? "--no-" : "--") + name;
}

std::string OptionRow::wanted() const {
  if (choices != nullptr) return fmt::format("one of {}", fmt::join(choices(), ", "));
  switch (type) {
    case 0:
      return "true or false";
    case 1:
      return fmt::format("a whole number from {} to {}", range.min, range.max);
    case 2:
      return fmt::format("a whole number from 0 to {}", std::numeric_limits<std::uint64_t>::max());
    case 3:
      return "a number " + bounds(range);
    default:
      return "a text";
  }
}

std::string OptionRow::refusal(const std::string& text) const {
  const auto number = type == 3 ? number_in<double>(text) : std::nullopt;
  const double value = number ? as_number(*number) : 0;
  if (!number || !range.on_hosts().holds(value)) return "is not " + wanted();
  return fmt::format("is {} as f32, which devices compute in; give another number {}",
                     static_cast<float>(value), bounds(range));
}

bool OptionRow::takes(const OptionValue& value) const {
  if (value.index() != type) return false;
  const bool is_open = open_at_zero && as_number(value) == 0;
  if (type == 1 || type == 3) return is_open || range.holds(as_number(value));
  if (choices == nullptr || other_names) return true;
  const std::vector<std::string> known = choices();
  return std::find(known.begin(), known.end(), std::get<std::string>(value)) != known.end();
}

bool OptionRow::leaves_open(const OptionValue& value) const {
  const double number = as_number(value);
  return (open_at_zero && number == 0) || (open_below_zero && number < 0);
}

std::optional<OptionValue> OptionRow::parse(const std::string& text) const {
  std::optional<OptionValue> value = text;
  if (type == 0) value = truth_in(text);
  if (type == 1) value = number_in<std::int64_t>(text);
  if (type == 2) value = number_in<std::uint64_t>(text);
  if (type == 3) value = number_in<double>(text);
  const bool is_number = type == 1 || type == 3;  // 0 may leave an option open that never has it
  const bool good = value && takes(*value) && (!is_number || range.holds(as_number(*value)));
  return good ? value : std::nullopt;
}

OptionRow OptionRow::with_ends() const {
  OptionRow row = *this;
  row.range.above_min = row.range.below_max = row.range.as_f32 = false;
  return row;
}

void OptionRow::require_taken(const OptionValue& value, const std::string& name) const {
  if (takes(value)) return;
  throw ContractError(fmt::format("{}: {} {}", name, text_of(value), refusal(text_of(value))));
}

std::string OptionRow::said(const OptionValue& value) const {
  if (!is_switch()) {
    std::string text = text_of(value);
    const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
    if (std::holds_alternative<double>(value) && whole) text += ".0";
    if (text.empty()) return "no " + flag_name();
    return (also == nullptr ? flag_name() : fmt::format("{} ({})", flag_name(), also)) + " " + text;
  }
  return (std::get<bool>(value) == (form == Switch::off) ? "no " : "") + flag_name();
}

}  // namespace ringlet::train
