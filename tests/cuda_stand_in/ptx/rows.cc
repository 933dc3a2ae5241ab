#include "tests/cuda_stand_in/ptx/rows.h"

#include <cctype>

#include "tests/cuda_stand_in/ptx/text.h"

namespace ringlet::ptx {

void Rows::declare(std::string_view text) {
  const std::size_t blank = text.find_first_of(" \t");
  const int width = width_of(text.substr(1, blank - 1));
  const std::string_view name = trimmed(text.substr(blank));
  const std::size_t bracket = name.find('<');
  if (bracket == std::string_view::npos) {
    registers_[name] = add(width);
    return;
  }
  const std::int64_t count = integer_of(name.substr(bracket + 1, name.find('>') - bracket - 1));
  std::vector<int>& family = families_[name.substr(0, bracket)];
  for (std::int64_t i = 0; i < count; ++i) family.push_back(add(width));
}

int Rows::add(int width) {
  widths_.push_back(width);
  return static_cast<int>(widths_.size()) - 1;
}

Row Rows::constant(std::uint64_t bits, int width) {
  const auto [found, is_new] = constants_.try_emplace({width, bits}, 0);
  if (is_new) found->second = add(width);
  return numbered(found->second);
}

Row Rows::of(std::string_view name, int width) {
  if (is_number(name)) return constant(bits_of(name), width);
  if (name.find('.') != std::string_view::npos) {
    const auto [found, is_new] = specials_.try_emplace(std::string(name), 0);
    if (is_new) found->second = add(4);
    return numbered(found->second);
  }
  if (const auto own = registers_.find(name); own != registers_.end()) return numbered(own->second);
  std::size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
  const auto family = families_.find(name.substr(0, digits));
  if (family == families_.end() || digits == name.size()) unknown(name);
  const auto number = static_cast<std::size_t>(integer_of(name.substr(digits)));
  if (number >= family->second.size()) unknown(name);
  return numbered(family->second[number]);
}

void Rows::place(Program& program) const {
  std::vector<int> before(widths_.size());
  for (int width = 8; width > 0; width /= 2) {
    for (std::size_t row = 0; row < widths_.size(); ++row) {
      if (widths_[row] != width) continue;
      before[row] = program.row_bytes;
      program.row_bytes += width;
    }
  }
  const auto placed = [&](Row row) {
    return row.width == 0 ? row : Row{row.width, before[static_cast<std::size_t>(row.before)]};
  };
  for (Instruction& instruction : program.instructions) {
    instruction.guard = placed(instruction.guard);
    for (Row& row : instruction.to) row = placed(row);
    for (Row& row : instruction.from) row = placed(row);
  }
  for (const auto& [what, row] : constants_) {
    program.constants.push_back({placed(numbered(row)), what.second});
  }
  for (const auto& [name, row] : specials_) program.specials[name] = placed(numbered(row));
}

}  // namespace ringlet::ptx
