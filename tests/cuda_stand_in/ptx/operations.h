// What the instructions of PTX do, as handlers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/cuda_stand_in/ptx/program.h"

namespace ringlet::ptx {

enum class Space : std::uint8_t { none, parameter, shared, global };

/// Of what computes, by its opcode and the bytes of its first registers. Null: it is not known.
Handler arithmetic(const std::vector<std::string_view>& opcode, int to_width, int from_width);

/// The same of cvt alone.
Handler convert(const std::vector<std::string_view>& opcode, int to_width, int from_width);

/// Handler of a load or store of so many bytes an element. `is_signed` widens with the sign.
/// Addresses come in the row `from[0]` of a load and `to[0]` of a store; without one, the offset
/// is the address.
Handler load(Space space, int bytes, bool is_signed, int register_width);
Handler store(Space space, int bytes, int register_width);
/// [from[0]] += from[1]; to[0] is what was there.
Handler atomic_add_u32();

/// Copies that run by themselves: of sixteen bytes from [from[1]] to shared [from[0]], or of zeros
/// where from[2] is 0; the end of a group; and waiting for all but `offset` groups.
Handler copy_later();
Handler end_copies();
Handler await_copies();
/// Four 8 x 8 matrices of 16-bit numbers, transposed, whose rows are at shared [from[0]].
Handler load_matrices();
/// to = from[0 .. 4) * from[4 .. 6) + from[6 .. 10): 16 x 16 by 16 x 8 numbers, sums in f32.
Handler multiply_matrices(bool bf16);

/// Cuts a register of so many bytes into pieces, the lowest first, or puts it together.
Handler cut(int wide, int pieces);
Handler join(int wide, int pieces);

}  // namespace ringlet::ptx
