// The rows of a kernel while it is read: registers, constants, and a thread's place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/ptx/program.h"

namespace ringlet::ptx {

/// Until place() the rows that it gives are numbered: Row::before is a number.
class Rows {
 public:
  void declare(std::string_view text);  ///< ".b32 %r<9>", ".b32 %temp"
  Row constant(std::uint64_t bits, int width);
  /// A register, a number of so many bytes, or "%tid.x". Throws std::invalid_argument.
  Row of(std::string_view name, int width);
  /// Lays them out, the widest first, and tells the program so.
  void place(Program& program) const;

 private:
  int add(int width);
  Row numbered(int row) const { return {widths_[static_cast<std::size_t>(row)], row}; }

  std::vector<int> widths_;
  std::map<std::string_view, int> registers_;
  std::map<std::string_view, std::vector<int>> families_;  // "%r" -> its rows
  std::map<std::pair<int, std::uint64_t>, int> constants_;
  std::map<std::string, int, std::less<>> specials_;
};

}  // namespace ringlet::ptx
