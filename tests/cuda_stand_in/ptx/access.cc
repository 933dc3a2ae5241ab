// Loads, stores, and registers cut into pieces.
#include <array>
#include <cstring>
#include <type_traits>

#include "tests/cuda_stand_in/ptx/block.h"
#include "tests/cuda_stand_in/ptx/operations.h"

namespace ringlet::ptx {

namespace {

std::uint64_t address_at(Block& block, const Instruction& at, Row row, int k) {
  const auto offset = static_cast<std::uint64_t>(at.offset);
  if (row.width == 0) return offset;
  return offset +
         (row.width == 8 ? block.row<std::uint64_t>(row)[k] : block.row<std::uint32_t>(row)[k]);
}

template <Space kSpace, class Memory, class Register>
void load_of(Block& block, const Instruction& at) {
  const int bytes = static_cast<int>(sizeof(Memory)) * at.elements;
  std::array<Register*, 4> to{};
  for (int e = 0; e < at.elements; ++e) to[e] = block.row<Register>(at.to[e]);
  block.each([&](int k) {
    const std::uint64_t address = address_at(block, at, at.from[0], k);
    const std::byte* from = nullptr;
    if constexpr (kSpace == Space::global) from = block.global(address, bytes, k, "reads");
    if constexpr (kSpace == Space::shared) from = block.shared(address, bytes, k, false);
    if constexpr (kSpace == Space::parameter) {
      from = block.parameters() + block.parameter(address, bytes);
    }
    for (int e = 0; e < at.elements; ++e) {
      Memory value;
      std::memcpy(&value, from + e * sizeof(Memory), sizeof(Memory));
      to[e][k] = static_cast<Register>(value);
    }
  });
}

template <Space kSpace, class Memory, class Register>
void store_of(Block& block, const Instruction& at) {
  const int bytes = static_cast<int>(sizeof(Memory)) * at.elements;
  std::array<const Register*, 4> from{};
  for (int e = 0; e < at.elements; ++e) from[e] = block.row<Register>(at.from[e]);
  block.each([&](int k) {
    const std::uint64_t address = address_at(block, at, at.to[0], k);
    std::byte* to = kSpace == Space::shared ? block.shared(address, bytes, k, true)
                                            : block.global(address, bytes, k, "writes");
    for (int e = 0; e < at.elements; ++e) {
      const auto value = static_cast<Memory>(from[e][k]);
      std::memcpy(to + e * sizeof(Memory), &value, sizeof(Memory));
    }
  });
}

template <Space kSpace, class Memory>
Handler load_to(int register_width) {
  using Widest = std::conditional_t<std::is_signed_v<Memory>, std::int64_t, std::uint64_t>;
  using Wide = std::conditional_t<std::is_signed_v<Memory>, std::int32_t, std::uint32_t>;
  if (register_width == 8) return load_of<kSpace, Memory, Widest>;
  if (register_width == 4) return load_of<kSpace, Memory, Wide>;
  return load_of<kSpace, Memory, std::uint16_t>;
}

template <Space kSpace>
Handler load_from(int bytes, bool is_signed, int register_width) {
  switch (bytes) {
    case 1:
      return is_signed ? load_to<kSpace, std::int8_t>(register_width)
                       : load_to<kSpace, std::uint8_t>(register_width);
    case 2:
      return is_signed ? load_to<kSpace, std::int16_t>(register_width)
                       : load_to<kSpace, std::uint16_t>(register_width);
    case 4:
      return is_signed ? load_to<kSpace, std::int32_t>(register_width)
                       : load_to<kSpace, std::uint32_t>(register_width);
    default:
      return load_to<kSpace, std::uint64_t>(register_width);
  }
}

template <Space kSpace, class Memory>
Handler store_from(int register_width) {
  if (register_width == 8) return store_of<kSpace, Memory, std::uint64_t>;
  if (register_width == 4) return store_of<kSpace, Memory, std::uint32_t>;
  return store_of<kSpace, Memory, std::uint16_t>;
}

template <Space kSpace>
Handler store_to(int bytes, int register_width) {
  switch (bytes) {
    case 1:
      return store_from<kSpace, std::uint8_t>(register_width);
    case 2:
      return store_from<kSpace, std::uint16_t>(register_width);
    case 4:
      return store_from<kSpace, std::uint32_t>(register_width);
    default:
      return store_from<kSpace, std::uint64_t>(register_width);
  }
}

void add_atomically(Block& block, const Instruction& at) {
  auto* before = block.row<std::uint32_t>(at.to[0]);
  const auto* by = block.row<std::uint32_t>(at.from[1]);
  block.each([&](int k) {
    std::byte* to = block.global(address_at(block, at, at.from[0], k), 4, k, "adds to");
    std::memcpy(&before[k], to, 4);
    const std::uint32_t sum = before[k] + by[k];
    std::memcpy(to, &sum, 4);
  });
}

template <class Wide, class Piece>
void cut_into(Block& block, const Instruction& at) {
  const Wide* from = block.row<Wide>(at.from[0]);
  for (int e = 0; e < at.elements; ++e) {
    Piece* to = block.row<Piece>(at.to[e]);
    const int by = 8 * static_cast<int>(sizeof(Piece)) * e;
    block.each([=](int k) { to[k] = static_cast<Piece>(from[k] >> by); });
  }
}

template <class Wide, class Piece>
void join_from(Block& block, const Instruction& at) {
  Wide* to = block.row<Wide>(at.to[0]);
  block.each([&](int k) {
    Wide all = 0;
    for (int e = 0; e < at.elements; ++e) {
      all |= Wide{block.row<Piece>(at.from[e])[k]} << (8 * sizeof(Piece) * e);
    }
    to[k] = all;
  });
}

}  // namespace

Handler load(Space space, int bytes, bool is_signed, int register_width) {
  switch (space) {
    case Space::parameter:
      return load_from<Space::parameter>(bytes, is_signed, register_width);
    case Space::shared:
      return load_from<Space::shared>(bytes, is_signed, register_width);
    default:
      return load_from<Space::global>(bytes, is_signed, register_width);
  }
}

Handler store(Space space, int bytes, int register_width) {
  return space == Space::shared ? store_to<Space::shared>(bytes, register_width)
                                : store_to<Space::global>(bytes, register_width);
}

Handler atomic_add_u32() { return add_atomically; }

Handler cut(int wide, int pieces) {
  if (wide == 4) return cut_into<std::uint32_t, std::uint16_t>;
  return pieces == 2 ? cut_into<std::uint64_t, std::uint32_t>
                     : cut_into<std::uint64_t, std::uint16_t>;
}

Handler join(int wide, int pieces) {
  if (wide == 4) return join_from<std::uint32_t, std::uint16_t>;
  return pieces == 2 ? join_from<std::uint64_t, std::uint32_t>
                     : join_from<std::uint64_t, std::uint16_t>;
}

}  // namespace ringlet::ptx
