// DecodeShare: memory that a thread decodes a large picture with. All threads of the process share
// half of what is free when the first of them asks. A thread for whose picture nothing is left of
// it waits for the others; alone it may have all that is free then.
//
// So a picture of 100 million pixels takes the memory that it needs once, and not once a thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace ringlet::data {

/// Smaller pictures need no share.
inline constexpr std::uint64_t kDecodedFreely = std::uint64_t{64} << 20;  // bytes

class DecodeShare {
 public:
  DecodeShare() = default;
  /// Takes `bytes`, or waits for them. `free`: how many there are now, 0: what the system says.
  /// Throws DataError, which names the picture, where there are less.
  DecodeShare(std::uint64_t bytes, const std::string& name, std::uint64_t free = 0);
  ~DecodeShare();
  DecodeShare(DecodeShare&& other) noexcept { *this = std::move(other); }
  DecodeShare& operator=(DecodeShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  bool is_free() const { return bytes_ == 0; }  ///< whether nothing had to be taken

 private:
  std::uint64_t bytes_ = 0;
};

}  // namespace ringlet::data
