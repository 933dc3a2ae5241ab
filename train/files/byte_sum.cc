#include "train/files/byte_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "data/content_hash.h"
#include "data/sampler.h"

namespace ringlet::train {

void ByteSum::add(const void* data, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::span<const std::uint8_t> rest(static_cast<const std::uint8_t*>(data), bytes);
  bytes_ += bytes;
  while (!rest.empty()) {
    const auto part = rest.first(std::min(kPiece - held_.size(), rest.size()));
    rest = rest.subspan(part.size());
    if (part.size() == kPiece) {  // nothing is held
      hash_ = data::hash_bytes(part, hash_);
      continue;
    }
    held_.insert(held_.end(), part.begin(), part.end());
    if (held_.size() < kPiece) continue;
    hash_ = data::hash_bytes(held_, hash_);
    held_.clear();
  }
}

std::string ByteSum::finish() {
  if (!held_.empty()) hash_ = data::hash_bytes(held_, hash_);
  return fmt::format("{:016x}", data::mix64(hash_ ^ bytes_));
}

}  // namespace ringlet::train
