// The table of options: a row says all that flags, variables, configuration files, states and
// checks need to know of a field. Whoever adds an option adds the field, a row beside it, and its
// use.
//
//   struct RateSpec { double lr = 0; };
//
//   std::vector<Option<RateSpec>> rate_options() {
//     return {option("lr", &RateSpec::lr, {.help = "learning rate", .range = from(0)})};
//   }
//
// Recipe (options.h) is composed of such structs, and recipe_options() (recipe_options.h) of their
// rows. A program on top of the library adds rows of its own there.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace ringlet::train {

/// A truth, a whole number, a number or a text.
using OptionValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
/// Options that were given, by key.
using GivenOptions = std::map<std::string, OptionValue>;

/// "true", "256", "0.1", "lenet": as files and messages have it.
std::string text_of(const OptionValue& value);

/// The numbers that an option takes; of signed whole ones, up to 2^31 - 1.
struct NumberRange {
  double min = std::numeric_limits<double>::lowest(), max = std::numeric_limits<double>::max();
  bool above_min = false, below_max = false;  ///< without that end
  /// Devices compute with the number: none but 0 may be 0 as f32, nor an end that is left out.
  bool as_f32 = true;

  bool holds(double value) const;
  constexpr NumberRange to(double most) const { return {min, most, above_min, false, as_f32}; }
  constexpr NumberRange below(double bound) const { return {min, bound, above_min, true, as_f32}; }
  constexpr NumberRange on_hosts() const { return {min, max, above_min, below_max, false}; }
};
constexpr NumberRange from(double least) { return {.min = least}; }
constexpr NumberRange above(double bound) { return {.min = bound, .above_min = true}; }

/// How the command line says a truth; all else has a value.
enum class Switch : std::uint8_t {
  on,   ///< --exact
  off,  ///< --no-shuffle
  both  ///< --nesterov, --no-nesterov
};

/// The option means something only where another one has one of these values.
struct OnlyWith {
  const char* key = nullptr;  ///< of the other one; null: it always does
  std::vector<std::string> values{};
  const char* refusal = nullptr;  ///< null: "is for --optimizer adamw; leave it out"
  bool of_all_runs = true;        ///< false: older runs that are resumed may have it
};

/// OptionFacts::may_become of what a run that is resumed may have anew, whatever it had.
inline bool may_always(const OptionValue&, const OptionValue&) { return true; }

/// What a row says besides key and field.
struct OptionFacts {
  std::string help{};
  NumberRange range{};
  std::function<std::vector<std::string>()> choices{};  ///< of a text; empty: any
  bool other_names = false;  ///< choices are those of a flag; a program may have others
  Switch form = Switch::on;
  const char* help_off = "";  ///< of the flag that switches it off, where there are both
  const char* default_in_words = nullptr;  ///< in the help, instead of the models' defaults
  const char* for_photographs = nullptr;   ///< in the help: of a folder of them (picture_fit.h)
  bool since_first_states = false;  ///< else states leave it out at its default: older readers
  bool of_runs_only = false;        ///< a Learner has none: 0 there
  bool open_at_zero = false;        ///< 0 leaves it open, in its range or not; no flag says it
  bool open_below_zero = false;     ///< the same of every negative number
  bool of_photographs = false;      ///< in a folder; refused with other data
  const char* task = nullptr;       ///< the only one that has the option; null: each
  /// Whether a run that is resumed may go on with `given` instead of its own; null: never.
  bool (*may_become)(const OptionValue& own, const OptionValue& given) = nullptr;
  bool has_flag = true;              ///< false: the program has code of its own for it
  const char* flag = nullptr;        ///< without dashes; null: as the key
  const char* also = nullptr;        ///< another name of the flag: "-b"
  const char* value_name = nullptr;  ///< "FILE|DIR", in the help; null: the choices, or the type's
  const char* off_word = nullptr;  ///< "none": the flag's value that switches `off_key` off instead
  const char* off_key = nullptr;
  OnlyWith only{};
};

/// A row without its field.
struct OptionRow : OptionFacts {
  OptionRow(std::string name, const OptionValue& kind, OptionFacts facts);

  std::string key;   ///< in states; in flags it has - for _
  std::size_t type;  ///< index in OptionValue

  bool is_switch() const { return type == 0; }
  std::string flag_name() const;  ///< "--batch-size", "--no-shuffle"
  std::string wanted() const;     ///< "a number from 0 to 1", "one of f32, f16"
  /// "is not a number above 0", or that it is only as f32, of a text or number that is not taken.
  std::string refusal(const std::string& text) const;
  bool takes(const OptionValue& value) const;
  bool leaves_open(const OptionValue& value) const;
  OptionRow with_ends() const;  ///< takes both ends of its range
  /// The value that the whole of `text` says; none where the row does not take it.
  std::optional<OptionValue> parse(const std::string& text) const;
  /// Throws ContractError "NAME: 2 is not a number from 0 to 1".
  void require_taken(const OptionValue& value, const std::string& name) const;
  /// "--lr 0.1", "--exact", "no --exact", "no --freeze": what says that value; "--flag (--also) 2".
  std::string said(const OptionValue& value) const;
};

/// A row of S.
template <class S>
struct Option : OptionRow {
  using OptionRow::OptionRow;
  explicit Option(const OptionRow& row) : OptionRow(row) {}
  /// The row of a struct that S is composed of.
  template <class Part>
  requires std::derived_from<S, Part> Option(const Option<Part>& part)
      : OptionRow(part), get(part.get), set(part.set) {}  // NOLINT

  std::function<OptionValue(const S&)> get;
  std::function<void(S&, const OptionValue&)> set;
};

namespace internal {

template <class T>
using KindOf = std::conditional_t<
    std::is_same_v<T, std::filesystem::path>, std::string,
    std::conditional_t<std::is_same_v<T, bool> || std::is_same_v<T, double> ||
                           std::is_same_v<T, std::string> || std::is_same_v<T, std::uint64_t>,
                       T, std::int64_t>>;

/// Throws ContractError where `value` is of another type than T or does not fit into it.
template <class T>
T value_as(const std::string& key, const OptionValue& value) {
  const auto* same = std::get_if<KindOf<T>>(&value);
  if (same == nullptr) throw ContractError("'" + key + "' has the type of another option");
  if constexpr (std::is_same_v<T, int>) {
    if (!std::in_range<int>(*same)) throw ContractError("'" + key + "' is too large or too small");
  }
  return static_cast<T>(*same);
}

}  // namespace internal

/// The row of a field that is a plain value: of its own struct, or of `Whole`, which is one.
template <class Whole = void, class T, class Owner>
auto option(std::string key, T Owner::*field, OptionFacts facts) {
  using S = std::conditional_t<std::is_void_v<Whole>, Owner, Whole>;
  using Kind = internal::KindOf<T>;
  Option<S> row(key, Kind{}, std::move(facts));
  row.get = [field](const S& all) { return OptionValue(static_cast<Kind>(all.*field)); };
  row.set = [field, key](S& all, const OptionValue& value) {
    all.*field = internal::value_as<T>(key, value);
  };
  return row;
}

/// The row of a text that stands for something else, such as an enumerator.
template <class S>
Option<S> named_option(std::string key, std::function<std::string(const S&)> name,
                       std::function<void(S&, const std::string&)> parse, OptionFacts facts) {
  Option<S> row(key, std::string(), std::move(facts));
  row.get = [name](const S& all) { return OptionValue(name(all)); };
  row.set = [parse, key](S& all, const OptionValue& value) {
    parse(all, internal::value_as<std::string>(key, value));
  };
  return row;
}

/// The row of an enumerator, or of a truth, which goes by one of these names.
template <class Whole = void, class T, class Owner>
auto choice_option(std::string key, T Owner::*field, std::vector<std::pair<std::string, T>> names,
                   OptionFacts facts) {
  using S = std::conditional_t<std::is_void_v<Whole>, Owner, Whole>;
  facts.choices = [names] {
    std::vector<std::string> choices;
    for (const auto& [name, value] : names) choices.push_back(name);
    return choices;
  };
  const auto name = [field, names](const S& all) {
    const auto is = [&](const auto& entry) { return entry.second == all.*field; };
    return std::find_if(names.begin(), names.end(), is)->first;
  };
  const auto set = [field, names, key](S& all, const std::string& text) {
    const auto is = [&](const auto& entry) { return entry.first == text; };
    const auto named = std::find_if(names.begin(), names.end(), is);
    require(named != names.end(), ("'" + key + "'").c_str(), "has none of its names");
    all.*field = named->second;
  };
  return named_option<S>(key, name, set, std::move(facts));
}

/// The rows of a member of S.
template <class S, class Part>
std::vector<Option<S>> options_in(Part S::*part, const std::vector<Option<Part>>& rows) {
  std::vector<Option<S>> whole;
  for (const Option<Part>& row : rows) {
    Option<S>& own = whole.emplace_back(static_cast<const OptionRow&>(row));
    own.get = [part, get = row.get](const S& all) { return get(all.*part); };
    own.set = [part, set = row.set](S& all, const OptionValue& value) { set(all.*part, value); };
  }
  return whole;
}

}  // namespace ringlet::train
