// The words of PTX: what stands between commas, numbers, names and addresses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ringlet::ptx {

/// Throws std::invalid_argument.
[[noreturn]] void unknown(std::string_view what);

std::string_view trimmed(std::string_view text);
/// Cuts at commas that stand in no bracket.
std::vector<std::string_view> list_of(std::string_view text);

std::int64_t integer_of(std::string_view text);  ///< "12", "-1", "0xFF"
bool is_number(std::string_view text);
/// Of a number as instructions have it: 12, -1, 0f3F800000, 0d3FF0000000000000.
std::uint64_t bits_of(std::string_view text);

/// "add.rn.f32" -> {"add", "rn", "f32"}
std::vector<std::string_view> parts_of(std::string_view opcode);
/// Bytes of a value of type "f32", "u16", "pred" ...
int width_of(std::string_view type);

/// ".param .align 8 .b8 NAME[48]", ".shared .u64 NAME"
struct Variable {
  std::string_view name;
  int bytes = 0, alignment = 0;
};
Variable variable_of(std::string_view text);

/// A register, a number, a vector of those, or [an address].
struct Operand {
  std::vector<std::string_view> names;
  std::int64_t offset = 0;
  bool is_address = false;
};
Operand operand_of(std::string_view text);

}  // namespace ringlet::ptx
