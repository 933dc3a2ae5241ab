#include "data/idx.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "data/byte_source.h"
#include "data/error.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kTypeU8 = 8;
/// Larger declared sizes are taken for nonsense (the largest possible product is far beyond 64
/// bits).
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;
/// Small enough that the observer finds the piece in the cache.
constexpr std::size_t kPieceBytes = std::size_t{1} << 17;
/// Memory taken on the word of a gzipped header; beyond it memory grows with what really comes.
constexpr std::uint64_t kTrustedBytes = std::uint64_t{1} << 26;

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x ", byte);
    text += digits.data();
  }
  if (!text.empty()) text.pop_back();
  return text;
}

const char* name_of_type(std::uint8_t type) {
  switch (type) {
    case 0x08:
      return "u8";
    case 0x09:
      return "i8";
    case 0x0B:
      return "i16";
    case 0x0C:
      return "i32";
    case 0x0D:
      return "f32";
    case 0x0E:
      return "f64";
    default:
      return nullptr;
  }
}

/// One reading of one file.
class IdxReader {
 public:
  IdxReader(const fs::path& file, const RawBytesObserver& observer)
      : name_(file.string()), observer_(observer), source_(open_bytes(file)) {}

  IdxArray read(int dimensions) {
    IdxArray array;
    read_magic(dimensions);
    array.sizes = read_sizes(dimensions);
    const std::uint64_t bytes = checked_bytes(array.sizes);
    require_length(header_bytes(dimensions) + bytes);
    read_values(bytes, header_bytes(dimensions), array.values);
    require_end(header_bytes(dimensions) + bytes);
    return array;
  }

 private:
  static std::uint64_t header_bytes(int dimensions) {
    return 4 + 4 * static_cast<std::uint64_t>(dimensions);
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(name_ + ": " + what); }

  [[noreturn]] void fail_truncated(std::uint64_t expected, std::uint64_t found) const {
    fail("truncated: expected " + std::to_string(expected) + " bytes, found " +
         std::to_string(found) + "; fetch the file again");
  }

  void read_header(std::span<std::uint8_t> bytes, std::uint64_t offset, std::uint64_t expected) {
    const std::size_t got = source_->read(bytes);
    if (got < bytes.size()) fail_truncated(expected, offset + got);
    if (observer_) observer_(bytes);
  }

  void read_magic(int dimensions) {
    std::array<std::uint8_t, 4> magic{};
    read_header(magic, 0, header_bytes(dimensions));
    const std::array<std::uint8_t, 4> wanted{0, 0, kTypeU8, static_cast<std::uint8_t>(dimensions)};
    if (magic == wanted) return;
    const char* type = name_of_type(magic[2]);
    const std::string expected = "expected the magic number " + hex(wanted) + " (u8, " +
                                 std::to_string(dimensions) + " dimensions), found " + hex(magic);
    if (magic[0] != 0 || magic[1] != 0 || type == nullptr) fail("not an IDX file: " + expected);
    fail(expected + " (" + type + ", " + std::to_string(magic[3]) + " dimensions)" +
         (magic[2] != kTypeU8 ? "; only u8 can be read" : "; are images and labels mixed up?"));
  }

  std::vector<std::int64_t> read_sizes(int dimensions) {
    std::vector<std::uint8_t> raw(4 * static_cast<std::size_t>(dimensions));
    read_header(raw, 4, header_bytes(dimensions));
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < raw.size(); i += 4) {
      sizes.push_back(std::int64_t{raw[i]} << 24 | raw[i + 1] << 16 | raw[i + 2] << 8 | raw[i + 3]);
    }
    return sizes;
  }

  /// The product of the sizes, as long as it makes sense.
  std::uint64_t checked_bytes(const std::vector<std::int64_t>& sizes) const {
    std::string shown;
    for (const std::int64_t size : sizes) {
      shown += (shown.empty() ? "" : " x ") + std::to_string(size);
    }
    std::uint64_t product = 1;
    for (const std::int64_t size : sizes) {
      const auto factor = static_cast<std::uint64_t>(size);
      if (factor != 0 && product > kMaxBytes / factor) {
        fail("the header declares " + shown + " bytes, which cannot be right; the file is damaged");
      }
      product *= factor;
    }
    return product;
  }

  /// Compares with the size of the file where that is known, before anything is allocated.
  void require_length(std::uint64_t expected) const {
    const std::optional<std::uint64_t> found = source_->size();
    if (!found) return;
    if (*found < expected) fail_truncated(expected, *found);
    if (*found > expected) {
      fail("oversized: expected " + std::to_string(expected) + " bytes, found " +
           std::to_string(*found) + "; fetch the file again");
    }
  }

  void read_values(std::uint64_t bytes, std::uint64_t offset, std::vector<std::uint8_t>& values) {
    const std::uint64_t trusted = source_->size() ? bytes : kTrustedBytes;
    values.resize(std::min({bytes, trusted, source_->at_most()}));
    for (std::uint64_t done = 0; done < bytes;) {
      if (done == values.size()) values.resize(std::min(bytes, 2 * done));
      const std::size_t piece = std::min<std::uint64_t>(kPieceBytes, values.size() - done);
      const std::span<std::uint8_t> destination(values.data() + done, piece);
      const std::size_t got = source_->read(destination);
      if (got < piece) fail_truncated(offset + bytes, offset + done + got);
      if (observer_) observer_(destination);
      done += piece;
    }
  }

  void require_end(std::uint64_t expected) {
    std::uint8_t extra = 0;
    if (source_->read({&extra, 1}) == 0) return;
    fail("oversized: expected " + std::to_string(expected) +
         " bytes, found more; fetch the file again");
  }

  std::string name_;
  const RawBytesObserver& observer_;
  std::unique_ptr<ByteSource> source_;
};

}  // namespace

IdxArray read_idx(const fs::path& file, int dimensions, const RawBytesObserver& observer) {
  return IdxReader(file, observer).read(dimensions);
}

}  // namespace ringlet::data
