// Copies to shared memory that run by themselves, and products of matrices by whole warps.
#include <array>
#include <cstring>

#include "kernels/narrow_floats.h"
#include "tests/cuda_stand_in/ptx/block.h"
#include "tests/cuda_stand_in/ptx/operations.h"

namespace ringlet::ptx {

namespace {

std::uint64_t shared_address(Block& block, const Instruction& at, int k) {
  const Row row = at.from[0];
  const auto offset = static_cast<std::uint64_t>(at.offset);
  return row.width == 0 ? offset : offset + block.row<std::uint32_t>(row)[k];
}

void copy(Block& block, const Instruction& at) {
  const auto* from = block.row<std::uint64_t>(at.from[1]);
  const auto* bytes = block.row<std::uint32_t>(at.from[2]);
  block.each([&](int k) {
    if (bytes[k] != 0 && bytes[k] != 16) block.fail("a copy of a part of sixteen bytes");
    block.copy_later(shared_address(block, at, k),
                     bytes[k] == 0 ? nullptr : block.global(from[k], 16, k, "copies"), k);
  });
}

/// Lane l gives the address of row l % 8 of matrix l / 8. Of each it gets two neighbours of column
/// l / 4: rows 2 (l % 4) and the next.
void load(Block& block, const Instruction& at) {
  block.each_warp([&](int first) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::array<std::array<std::uint16_t, 8>, 8> rows{};
      for (int row = 0; row < 8; ++row) {
        const int lane = first + matrix * 8 + row;
        std::memcpy(rows[row].data(),
                    block.shared(shared_address(block, at, lane), 16, Block::kAnyOfWarp, false),
                    16);
      }
      auto* to = block.row<std::uint32_t>(at.to[matrix]);
      for (int lane = 0; lane < Block::kWarp; ++lane) {
        const int column = lane / 4, row = lane % 4 * 2;
        to[first + lane] = rows[row][column] | std::uint32_t{rows[row + 1][column]} << 16U;
      }
    }
  });
}

/// Where the lanes have their numbers: PTX ISA, "Matrix Fragments for mma.m16n8k16".
template <class T>
void multiply(Block& block, const Instruction& at) {
  block.each_warp([&](int first) {
    std::array<std::array<float, 16>, 16> a{};  // [m][k]
    std::array<std::array<float, 8>, 16> b{};   // [k][n]
    const auto halves = [&](Row row, int lane, auto store) {
      const std::uint32_t both = block.row<std::uint32_t>(row)[first + lane];
      store(0, widen(T{static_cast<std::uint16_t>(both)}));
      store(1, widen(T{static_cast<std::uint16_t>(both >> 16U)}));
    };
    for (int lane = 0; lane < Block::kWarp; ++lane) {
      const int group = lane / 4, pair = lane % 4 * 2;
      for (int e = 0; e < 4; ++e) {
        halves(at.from[e], lane, [&](int half, float value) {
          a[group + e % 2 * 8][pair + e / 2 * 8 + half] = value;
        });
      }
      for (int e = 0; e < 2; ++e) {
        halves(at.from[4 + e], lane,
               [&](int half, float value) { b[pair + e * 8 + half][group] = value; });
      }
    }
    for (int lane = 0; lane < Block::kWarp; ++lane) {
      for (int e = 0; e < 4; ++e) {
        const int m = lane / 4 + e / 2 * 8, n = lane % 4 * 2 + e % 2;
        double sum = 0;
        for (int k = 0; k < 16; ++k) sum += double{a[m][k]} * double{b[k][n]};
        const float before = block.row<float>(at.from[6 + e])[first + lane];
        block.row<float>(at.to[e])[first + lane] = static_cast<float>(before + sum);
      }
    }
  });
}

}  // namespace

Handler copy_later() { return copy; }
Handler end_copies() {
  return [](Block& block, const Instruction&) { block.each([&](int k) { block.end_copies(k); }); };
}
Handler await_copies() {
  return [](Block& block, const Instruction& at) {
    block.each([&](int k) { block.await_copies(k, static_cast<int>(at.offset)); });
  };
}
Handler load_matrices() { return load; }
Handler multiply_matrices(bool bf16) { return bf16 ? multiply<BFloat16> : multiply<Half>; }

}  // namespace ringlet::ptx
