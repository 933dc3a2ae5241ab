#include "train/telemetry/tensorboard/crc32c.h"

#include <array>
#include <bit>

namespace ringlet::train::tensorboard {

namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;

/// [byte]: what the byte alone makes of the checksum.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    }
    table[byte] = crc;
  }
  return table;
}

constexpr auto kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  }
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr int kTurn = 15;
  constexpr std::uint32_t kConstant = 0xA282EAD8;
  return std::rotr(crc32c(bytes), kTurn) + kConstant;
}

}  // namespace ringlet::train::tensorboard
