#include "tests/cuda_stand_in/ptx/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "tests/cuda_stand_in/ptx/operations.h"

namespace ringlet::ptx {

namespace {

int aligned(int offset, int to) { return (offset + to - 1) / to * to; }

}  // namespace

Reader::Reader(Program& program, const std::vector<std::string>& files)
    : program_(program), files_(files) {
  program_.sources = {""};
}

void Reader::parameters(std::string_view list) {
  for (const std::string_view text : list_of(list)) {
    const Variable variable = variable_of(text);
    const int offset = aligned(program_.parameter_bytes, variable.alignment);
    program_.parameters.push_back({offset, variable.bytes});
    program_.parameter_bytes = offset + variable.bytes;
    symbols_[std::string(variable.name)] = offset;
  }
}

void Reader::shared(std::string_view text) {
  constexpr int kApart = 16;
  const Variable variable = variable_of(text);
  const int offset = aligned(program_.shared_bytes, kApart);
  program_.shared_bytes = offset + variable.bytes;
  symbols_[std::string(variable.name)] = offset;
}

/// A kernel that names it has no other shared memory.
void Reader::shared_by_launch(std::string_view text) {
  const std::size_t name = text.find_last_of(" \t") + 1;
  by_launch_ = std::string(text.substr(name, text.find('[') - name));
}

void Reader::body(std::string_view text) {
  std::size_t i = 0;
  while (true) {
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i])) != 0) ++i;
    if (i == text.size()) break;
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("//") || rest.starts_with(".loc")) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      if (rest[0] == '.') location(rest.substr(0, end));
      i += end;
    } else if (rest[0] == '{' || rest[0] == '}') {
      ++i;
    } else {
      const std::size_t end = rest.find_first_of(";:");
      if (end == std::string_view::npos) unknown(rest.substr(0, 40));
      const std::string_view statement = trimmed(rest.substr(0, end));
      if (rest[end] == ':') {
        labels_[statement] = static_cast<int>(program_.instructions.size());
      } else {
        take(statement);
      }
      i += end + 1;
    }
  }
  for (const auto& [index, label] : jumps_) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) unknown(label);
    program_.instructions[static_cast<std::size_t>(index)].target = found->second;
  }
  program_.instructions.push_back({.flow = Flow::end});
  rows_.place(program_);
}

void Reader::location(std::string_view text) {  // .loc FILE LINE COLUMN ...
  text = trimmed(text.substr(4));
  const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
  const auto file = static_cast<std::size_t>(integer_of(text.substr(0, first)));
  program_.sources.push_back(fmt::format("{}:{}", file < files_.size() ? files_[file] : "?",
                                         trimmed(text.substr(first, second - first))));
}

void Reader::take(std::string_view statement) {
  if (statement.starts_with(".reg")) return rows_.declare(trimmed(statement.substr(4)));
  if (statement.starts_with(".shared")) return shared(statement);
  if (statement.starts_with(".pragma")) return;
  if (statement.starts_with('.')) unknown(statement);
  Instruction instruction;
  std::optional<std::string_view> guard;
  if (statement.starts_with('@')) {
    const std::size_t end = statement.find_first_of(" \t");
    guard = statement.substr(1, end - 1);
    statement = trimmed(statement.substr(end));
  }
  const std::size_t end = std::min(statement.find_first_of(" \t"), statement.size());
  const std::string_view opcode = statement.substr(0, end);
  instruction.line = static_cast<int>(program_.sources.size()) - 1;
  if (guard) {
    if (!opcode.starts_with("bra")) unknown(statement);
    instruction.unless = guard->starts_with('!');
    instruction.guard = row_of(guard->substr(instruction.unless ? 1 : 0), 1);
  }
  if (!flow(instruction, opcode, list_of(statement.substr(end)))) {
    decode(instruction, opcode, statement.substr(end));
    if (instruction.run == nullptr) unknown(statement);
  }
  program_.instructions.push_back(instruction);
}

bool Reader::flow(Instruction& instruction, std::string_view opcode,
                  const std::vector<std::string_view>& operands) {
  if (opcode == "bra" || opcode == "bra.uni") {
    instruction.flow = Flow::branch;
    jumps_.emplace_back(program_.instructions.size(), operands.at(0));
  } else if (opcode == "ret" || opcode == "exit") {
    instruction.flow = Flow::end;
  } else if (opcode == "bar.sync") {
    if (operands.size() != 1) unknown("bar.sync of some threads");
    instruction.flow = Flow::barrier;
  } else if (opcode == "griddepcontrol.wait") {
    instruction.flow = Flow::wait;
  } else {
    return false;
  }
  return true;
}

void Reader::decode(Instruction& instruction, std::string_view opcode, std::string_view list) {
  if (opcode == "membar.gl" || opcode == "griddepcontrol.launch_dependents") {
    instruction.run = [](Block&, const Instruction&) {};
    return;
  }
  const std::vector<std::string_view> parts = parts_of(opcode);
  const std::string_view op = parts.front();
  std::vector<Operand> operands;
  for (const std::string_view text : list_of(list)) operands.push_back(operand_of(text));
  if (matrices(instruction, parts, operands)) return;
  if (operands.size() < 2 || operands.size() > 1 + instruction.from.size()) return;
  if (op == "ld" || op == "st") {
    access(instruction, parts, operands);
  } else if (opcode == "atom.global.add.u32") {
    instruction.to[0] = row_of(operands[0].names[0], 4);
    instruction.from[0] = base_of(instruction, operands[1]);
    instruction.from[1] = row_of(operands.at(2).names[0], 4);
    instruction.run = atomic_add_u32();
  } else if (op == "mov" && operands[0].names.size() + operands[1].names.size() > 2) {
    cut_or_join(instruction, parts.back(), operands);
  } else if (op == "cvta") {  // global addresses are those of the generic space
    compute(instruction, parts_of("mov.u64"), operands);
  } else {
    compute(instruction, parts, operands);
  }
}

void Reader::cut_or_join(Instruction& instruction, std::string_view type,
                         const std::vector<Operand>& operands) {
  const bool cuts = operands[0].names.size() > 1;
  const Operand &pieces = operands[cuts ? 0 : 1], &whole = operands[cuts ? 1 : 0];
  instruction.elements = static_cast<int>(pieces.names.size());
  for (std::size_t e = 0; e < pieces.names.size(); ++e) {
    (cuts ? instruction.to : instruction.from).at(e) =
        row_of(pieces.names[e], width_of(type) / instruction.elements);
  }
  (cuts ? instruction.from : instruction.to)[0] = row_of(whole.names[0], width_of(type));
  instruction.run =
      cuts ? cut(width_of(type), instruction.elements) : join(width_of(type), instruction.elements);
}

void Reader::compute(Instruction& instruction, const std::vector<std::string_view>& parts,
                     const std::vector<Operand>& operands) {
  const std::string_view op = parts.front(), type = parts.back();
  const int width = width_of(type);
  const std::string_view to = operands[0].names[0];
  instruction.to[0] = row_of(to, op == "setp" ? 1 : width);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const bool is_count = ((op == "shl" || op == "shr") && i == 2) || (op == "bfi" && i >= 3);
    const int own = is_count ? 4 : op == "selp" && i == 3 ? 1 : width;
    instruction.from[i - 1] = row_of(operands[i].names[0], own);
  }
  instruction.run = arithmetic(parts, instruction.to[0].width, instruction.from[0].width);
}

void Reader::access(Instruction& instruction, const std::vector<std::string_view>& parts,
                    const std::vector<Operand>& operands) {
  const bool loads = parts.front() == "ld";
  const std::string_view type = parts.back();
  const Operand& values = operands.at(loads ? 0 : 1);
  const Operand& address = operands.at(loads ? 1 : 0);
  const std::string_view where = parts.at(1);
  const Space space = where == "param"    ? Space::parameter
                      : where == "shared" ? Space::shared
                      : where == "global" ? Space::global
                                          : Space::none;
  if (space == Space::none || !address.is_address || values.names.size() > 4) return;
  instruction.elements = static_cast<int>(values.names.size());
  int width = 0;
  for (int e = 0; e < instruction.elements; ++e) {
    const Row row = row_of(values.names[e], std::max(2, width_of(type)));
    (loads ? instruction.to : instruction.from)[e] = row;
    width = row.width;
  }
  (loads ? instruction.from : instruction.to)[0] = base_of(instruction, address);
  instruction.run = loads ? load(space, width_of(type), type[0] == 's', width)
                          : store(space, width_of(type), width);
}

/// What whole warps do, and copies that run by themselves.
bool Reader::matrices(Instruction& instruction, const std::vector<std::string_view>& parts,
                      const std::vector<Operand>& operands) {
  const auto take = [&](const Operand& operand, std::size_t first) {
    for (const std::string_view name : operand.names)
      instruction.from.at(first++) = row_of(name, 4);
  };
  const auto is = [&](std::string_view opcode) { return parts == parts_of(opcode); };
  if (is("cp.async.commit_group")) {
    instruction.run = end_copies();
  } else if (is("cp.async.wait_group")) {
    instruction.offset = integer_of(operands.at(0).names[0]);
    instruction.run = await_copies();
  } else if (is("cp.async.cg.shared.global")) {
    if (operands.size() != 4 || operands[2].names[0] != "16") return false;
    instruction.from[0] = base_of(instruction, operands[0], 4);
    if (operands[1].offset != 0) return false;
    instruction.from[1] = row_of(operands[1].names[0], 8);
    take(operands[3], 2);
    instruction.run = copy_later();
  } else if (is("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16")) {
    for (std::size_t e = 0; e < 4; ++e) instruction.to[e] = row_of(operands.at(0).names.at(e), 4);
    instruction.from[0] = base_of(instruction, operands.at(1), 4);
    instruction.run = load_matrices();
  } else if (is("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") ||
             is("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")) {
    for (std::size_t e = 0; e < 4; ++e) instruction.to[e] = row_of(operands.at(0).names.at(e), 4);
    take(operands.at(1), 0);
    take(operands.at(2), 4);
    take(operands.at(3), 6);
    instruction.run = multiply_matrices(parts[7] == "bf16");
  } else {
    return false;
  }
  return true;
}

/// The row that the offset is added to; none where a variable is named.
Row Reader::base_of(Instruction& instruction, const Operand& address, int width) {
  instruction.offset = address.offset;
  const auto symbol = symbols_.find(address.names[0]);
  if (symbol == symbols_.end()) return row_of(address.names[0], width);
  instruction.offset += symbol->second;
  return {};
}

Row Reader::row_of(std::string_view name, int width) {
  if (name == by_launch_) {
    if (program_.shared_bytes > 0)
      unknown("shared memory of the kernel's and of the launch's size");
    return rows_.constant(0, width);
  }
  const auto symbol = symbols_.find(name);
  if (symbol == symbols_.end()) return rows_.of(name, width);
  return rows_.constant(static_cast<std::uint64_t>(symbol->second), width);
}

}  // namespace ringlet::ptx
