// A kernel as nvcc wrote it, in PTX, made ready to run: see block.h.
//
// A register holds a value for each thread of a block, and these stand one after the other: a row.
// Constants and what a thread can ask of its place (%tid.x) are rows as well, so an instruction
// reads and writes rows alone.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::ptx {

class Block;
struct Instruction;

/// Carries an instruction out for the threads of the block that are at it.
using Handler = void (*)(Block&, const Instruction&);

struct Row {
  int width = 0;   ///< bytes of a thread's value; 0: there is none
  int before = 0;  ///< bytes of a thread's values in the rows before it
};

enum class Flow : std::uint8_t { next, branch, barrier, wait, end };

struct Instruction {
  Flow flow = Flow::next;
  Handler run = nullptr;
  Row guard{};                       ///< of a branch: taken by the threads in whose row 1 stands
  bool unless = false;               ///< or 0
  std::array<Row, 10> to{}, from{};  // as many as a product of matrices reads
  int elements = 1;         ///< of a vector that is loaded or stored, or cut into registers
  std::int64_t offset = 0;  ///< to be added to an address
  int target = 0;           ///< of a branch: index of an instruction
  int line = 0;             ///< in Program::sources, of what it was compiled from
};

struct Parameter {
  int offset = 0, bytes = 0;
};

struct Program {
  std::string name;  ///< mangled
  std::vector<Parameter> parameters;
  int parameter_bytes = 0, shared_bytes = 0;
  std::vector<Instruction> instructions;
  struct Constant {
    Row row;
    std::uint64_t bits;
  };
  std::vector<Constant> constants;
  std::map<std::string, Row, std::less<>> specials;  ///< "%tid.x"
  int row_bytes = 0;                                 ///< of a thread, over all rows
  std::vector<std::string> sources;  ///< "kernels/grid/bias.h:42"; the first: unknown
};

/// Makes the kernels of a module ready. Throws std::invalid_argument naming the instruction that is
/// not known: none of Ringlet's kernels calls functions, has local memory or votes.
class Module {
 public:
  explicit Module(std::string text);
  /// Mangled, in their order.
  std::vector<std::string> names() const;
  /// Throws std::out_of_range.
  Program program(std::string_view name) const;
  /// From ".entry" to the closing brace.
  std::string_view text_of(std::string_view name) const;

 private:
  std::string text_;
  std::string_view head_;  // before the first kernel: variables of all of them
  std::vector<std::pair<std::string, std::string_view>> entries_;
  std::vector<std::string> files_;  // by the number that .loc gives
};

}  // namespace ringlet::ptx
