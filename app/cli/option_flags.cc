#include "app/cli/option_flags.h"

#include <fmt/format.h>

#include "app/cli/checks.h"

namespace ringlet::app {

namespace {

/// As CLI11 calls the types. Help shows numbers as N and X.
std::string type_name_of(const train::OptionRow& row) {
  constexpr const char* kTypes[] = {"", "INT", "UINT", "FLOAT", "TEXT"};
  if (row.value_name != nullptr) return row.value_name;
  if (row.choices != nullptr) return fmt::format("{}", fmt::join(row.choices(), "|"));
  return kTypes[row.type];
}

}  // namespace

CLI::Option* add_flag(CLI::App& app, const train::OptionRow& row, const std::string& help,
                      const NoteOption& note) {
  const std::string names =
      row.flag_name() + (row.also == nullptr ? "" : fmt::format(",{}", row.also));
  if (row.is_switch()) {
    const bool standing = row.form != train::Switch::off;
    return app.add_flag_function(
        names, [standing, note](std::int64_t on) { note((on > 0) == standing); }, help);
  }
  CLI::Option* flag = app.add_option_function<std::string>(
      names, [row, note](const std::string& text) { note(*row.parse(text)); }, help);
  if (row.choices != nullptr) {
    flag->check(one_of(row.choices()));
  } else if (row.type != train::OptionValue(std::string()).index()) {
    flag->check(number_of(row));
  }
  return flag->type_name(type_name_of(row));
}

CLI::Option* add_flag(CLI::App& app, const train::OptionRow& row,
                      const train::OptionValue& standard, const NoteOption& note) {
  const bool in_words = row.default_in_words != nullptr;
  const std::string help =
      in_words ? fmt::format("{} [{}]", row.help, row.default_in_words) : row.help;
  CLI::Option* flag = add_flag(app, row, help, note);
  const bool shown = !in_words && !row.is_switch() && !row.leaves_open(standard);
  return shown ? flag->default_str(train::text_of(standard)) : flag;
}

}  // namespace ringlet::app
