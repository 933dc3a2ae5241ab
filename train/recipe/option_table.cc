#include "train/recipe/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace ringlet::train {

namespace {

/// "RINGLET_WEIGHT_DECAY"; RINGLET_DATA names the folder of Fashion-MNIST, as ever.
std::string variable_of(const OptionRow& row) {
  if (row.key == "data") return "RINGLET_DATASET";
  std::string name = "RINGLET_";
  for (const unsigned char c : row.flag_name().substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  }
  return name;
}

std::string off_flag(const OptionRow& row) { return "--no-" + row.flag_name().substr(2); }

/// Notes what `name` says of the row.
void give(const OptionRow& row, const std::string& name, const std::string& text,
          GivenOptions& given) {
  const bool is_off = row.off_word != nullptr && text == row.off_word;
  if (row.off_key != nullptr) given[row.off_key] = !is_off;
  if (is_off) return;
  const auto value = row.parse(text);
  if (!value) throw ContractError(fmt::format("{}: '{}' {}", name, text, row.refusal(text)));
  const bool turned = row.is_switch() && row.form == Switch::off;
  given[row.key] = turned ? OptionValue(!std::get<bool>(*value)) : *value;
}

const OptionRow& row_of(const std::vector<OptionRow>& rows, const std::string& flag) {
  for (const OptionRow& row : rows) {
    if (row.flag_name() == flag) return row;
    if (row.is_switch() && row.form == Switch::both && off_flag(row) == flag) return row;
  }
  std::vector<std::string> known;
  for (const OptionRow& row : rows) known.push_back(row.flag_name());
  throw ContractError(
      fmt::format("there is no flag {}; the flags are {}", flag, fmt::join(known, ", ")));
}

}  // namespace

GivenOptions given_options(const std::vector<OptionRow>& rows, int argc, const char* const* argv) {
  GivenOptions given;
  for (const OptionRow& row : rows) {
    const std::string name = variable_of(row);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes the environment meanwhile
    const char* text = std::getenv(name.c_str());
    if (text != nullptr && *text != 0) give(row, name, text, given);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = std::min(word.find('='), word.size());
    const std::string flag = word.substr(0, equals);
    const OptionRow& row = row_of(rows, flag);
    if (row.is_switch()) {
      require(equals == word.size(), flag.c_str(), "is a switch: it takes no value");
      give(row, flag, flag == row.flag_name() ? "true" : "false", given);
    } else if (equals < word.size()) {
      give(row, flag, word.substr(equals + 1), given);
    } else {
      require(++i < argc, flag.c_str(), "needs a value");
      give(row, flag, argv[i], given);
    }
  }
  return given;
}

}  // namespace ringlet::train
