// Raw bytes of a file, gzipped (RFC 1952) or not: the content says which.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace ringlet::data {

/// Delivers a file's raw bytes from its beginning to its end. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `destination` as far as the file reaches; fewer bytes only at the end. Throws DataError
  /// when the file cannot be read, is a damaged gzip stream, or expands beyond kMostSwelling.
  virtual std::size_t read(std::span<std::uint8_t> destination) = 0;
  /// Number of raw bytes, where it is known before reading.
  virtual std::optional<std::uint64_t> size() const = 0;
  /// The most raw bytes that a file of this size can hold. A header that asks for more is not
  /// believed.
  virtual std::uint64_t at_most() const = 0;
  /// Bytes on the disk.
  virtual std::uint64_t stored() const = 0;
  virtual bool gzipped() const = 0;
};

/// A gzip stream may give kFreeBytes, and beyond them kMostSwelling times its own size: a small
/// file must not fill the memory. Pictures shrink to a half or a tenth; deflate could reach 1032.
inline constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 26;
inline constexpr std::uint64_t kMostSwelling = 200;

/// Opens a regular file. Throws DataError naming it.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& file);

/// The same for a file's content in memory, which has to outlive it; `name` is for messages.
std::unique_ptr<ByteSource> open_bytes(std::span<const std::uint8_t> content, std::string name);

}  // namespace ringlet::data
