// Raw bytes of a file, whether it is gzipped (RFC 1952) or not: that is seen from its content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

namespace ringlet::data {

/// Delivers a file's raw bytes from its beginning to its end. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `destination` as far as the file reaches; fewer bytes only at the end.
  /// Throws DataError when the file cannot be read or is a damaged gzip stream.
  virtual std::size_t read(std::span<std::uint8_t> destination) = 0;
  /// Number of raw bytes, where it is known before reading.
  virtual std::optional<std::uint64_t> size() const = 0;
  /// What the file's size on the disk allows for, at most: never allocate more on a header's word.
  virtual std::uint64_t at_most() const = 0;
};

/// Opens a regular file. Throws DataError naming it.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& file);

}  // namespace ringlet::data
