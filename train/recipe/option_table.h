// The rows of a struct's options, by key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

template <class S>
class OptionTable {
 public:
  OptionTable() = default;

  /// Throws ContractError where there is one of that key or flag already.
  void add(Option<S> row) {
    for (const Option<S>& known : rows_) {
      if (known.key != row.key && known.flag_name() != row.flag_name()) continue;
      throw ContractError("there is an option '" + known.key + "' (" + known.flag_name() +
                          ") already; give '" + row.key + "' another name");
    }
    rows_.push_back(std::move(row));
  }
  /// Of a struct that S is composed of.
  template <class Part>
  void add(const std::vector<Option<Part>>& rows) {
    for (const Option<Part>& row : rows) add(Option<S>(row));
  }

  const std::vector<Option<S>>& rows() const { return rows_; }

  /// Null where there is none.
  const Option<S>* find(std::string_view key) const {
    for (const Option<S>& row : rows_) {
      if (row.key == key) return &row;
    }
    return nullptr;
  }
  /// Throws ContractError where there is none.
  const Option<S>& at(std::string_view key) const {
    if (const Option<S>* row = find(key)) return *row;
    throw ContractError("there is no option '" + std::string(key) + "'");
  }

  OptionValue get(const S& all, std::string_view key) const { return at(key).get(all); }
  /// Throws ContractError for a value that the option does not take, naming the flag.
  void set(S& all, std::string_view key, const OptionValue& value) const {
    const Option<S>& row = at(key);
    row.require_taken(value, row.flag_name());
    row.set(all, value);
  }
  void set(S& all, const GivenOptions& given) const {
    for (const auto& [key, value] : given) set(all, key, value);
  }

 private:
  std::vector<Option<S>> rows_;
};

GivenOptions given_options(const std::vector<OptionRow>& rows, int argc, const char* const* argv);

/// The options that a command line gives: --lr 0.1, --lr=0.1, --exact, --no-shuffle; and, where it
/// does not, the variables RINGLET_LR and so on. Throws ContractError for a word that is none of
/// these and for a value that the option does not take.
template <class S>
GivenOptions given_options(const OptionTable<S>& table, int argc, const char* const* argv) {
  std::vector<OptionRow> rows(table.rows().begin(), table.rows().end());
  return given_options(rows, argc, argv);
}

}  // namespace ringlet::train
