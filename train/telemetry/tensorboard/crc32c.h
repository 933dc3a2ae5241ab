// CRC-32C (Castagnoli; RFC 3720, appendix B.4): polynomial 0x1EDC6F41, reflected, with all bits
// inverted before and after.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringlet::train::tensorboard {

std::uint32_t crc32c(std::string_view bytes);

/// The masked form that event files hold: rotated right by 15 bits, plus a constant. So the
/// checksum of a text that holds checksums is still a good one.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace ringlet::train::tensorboard
