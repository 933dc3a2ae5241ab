// Reads a kernel, statement by statement.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/ptx/program.h"
#include "tests/cuda_stand_in/ptx/rows.h"
#include "tests/cuda_stand_in/ptx/text.h"

namespace ringlet::ptx {

/// Throws std::invalid_argument where something is not known.
class Reader {
 public:
  Reader(Program& program, const std::vector<std::string>& files);

  void parameters(std::string_view list);        ///< what stands in brackets behind the name
  void shared(std::string_view text);            ///< ".shared .align 8 .b8 NAME[48]"
  void shared_by_launch(std::string_view text);  ///< ".shared .align 128 .b8 NAME[]"
  void body(std::string_view text);              ///< what stands in braces

 private:
  void location(std::string_view text);
  void take(std::string_view statement);
  bool flow(Instruction& instruction, std::string_view opcode,
            const std::vector<std::string_view>& operands);
  void decode(Instruction& instruction, std::string_view opcode, std::string_view operands);
  void cut_or_join(Instruction& instruction, std::string_view type,
                   const std::vector<Operand>& operands);
  void compute(Instruction& instruction, const std::vector<std::string_view>& opcode,
               const std::vector<Operand>& operands);
  void access(Instruction& instruction, const std::vector<std::string_view>& opcode,
              const std::vector<Operand>& operands);
  bool matrices(Instruction& instruction, const std::vector<std::string_view>& opcode,
                const std::vector<Operand>& operands);
  Row base_of(Instruction& instruction, const Operand& address, int width = 8);
  Row row_of(std::string_view name, int width);

  Program& program_;
  const std::vector<std::string>& files_;            // by the number that .loc gives
  std::map<std::string, int, std::less<>> symbols_;  // variables: where they begin in their space
  std::string by_launch_;                            // shared memory as large as the launch says
  std::map<std::string_view, int> labels_;
  std::vector<std::pair<std::size_t, std::string_view>> jumps_;
  Rows rows_;
};
}  // namespace ringlet::ptx
