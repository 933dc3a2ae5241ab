#include "base/byte_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "base/sampling.h"

namespace ringlet {

void ByteSum::add(const void* data, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::span<const std::uint8_t> rest(static_cast<const std::uint8_t*>(data), bytes);
  bytes_ += bytes;
  while (!rest.empty()) {
    const auto part = rest.first(std::min(kPiece - held_.size(), rest.size()));
    rest = rest.subspan(part.size());
    if (part.size() == kPiece) {  // nothing is held
      hash_ = hash_bytes(part, hash_);
      continue;
    }
    held_.insert(held_.end(), part.begin(), part.end());
    if (held_.size() < kPiece) continue;
    hash_ = hash_bytes(held_, hash_);
    held_.clear();
  }
}

std::string ByteSum::finish() {
  if (!held_.empty()) hash_ = hash_bytes(held_, hash_);
  return fmt::format("{:016x}", mix64(hash_ ^ bytes_));
}

}  // namespace ringlet
