// A 64-bit sum of bytes, by which damage is found (a flipped bit, zeros, another file of the same
// form). Saved states keep it, so it must never change. It is no proof against forgers.
//
// The bytes are cut into pieces of 64 KiB; the hash of each (base/hash.h) is the seed of
// the next one's. The sum is that of the last piece, with the number of bytes mixed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ringlet {

class ByteSum {
 public:
  /// The next bytes. They may be cut anywhere: the sum is the same.
  void add(const void* data, std::size_t bytes);
  /// 16 hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  std::vector<std::uint8_t> held_;  // the beginning of a piece
  std::uint64_t hash_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace ringlet
