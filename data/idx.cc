#include "data/idx.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "base/data_error.h"
#include "base/memory_limits.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kTypeU8 = 8;
/// Larger declared sizes are refused. (The largest possible product needs far more than 64 bits.)
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;
/// Small enough that the observer finds the piece in the cache.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 17;
/// A gzipped file's header is trusted for this much memory. Beyond it, memory grows with the bytes
/// that really come.
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
  IdxReader(ByteSource& source, const std::string& name, const RawBytesObserver& observer)
      : name_(name), observer_(observer), source_(source) {}

  IdxArray read(int dimensions) {
    require_magic(read_magic(header_bytes(dimensions)), dimensions);
    IdxArray array;
    const std::uint64_t bytes = read_sizes(dimensions, array.sizes);
    read_values(bytes, header_bytes(dimensions), array.values);
    require_end(header_bytes(dimensions) + bytes);
    return array;
  }

  void scan(const IdxPieces& pieces) {
    const Magic magic = read_magic(header_bytes(1));
    const int dimensions = std::max<int>(1, magic[3]);
    require_magic(magic, dimensions);
    std::vector<std::int64_t> sizes;
    const std::uint64_t bytes = read_sizes(dimensions, sizes);
    std::vector<std::uint8_t> piece(std::min<std::uint64_t>(bytes, kReadAtOnce));
    for (std::uint64_t done = 0; done < bytes; done += piece.size()) {
      piece.resize(std::min<std::uint64_t>(bytes - done, kReadAtOnce));
      read_piece(piece, header_bytes(dimensions) + done, header_bytes(dimensions) + bytes);
      pieces(sizes, piece);
    }
    if (bytes == 0) pieces(sizes, {});
    require_end(header_bytes(dimensions) + bytes);
  }

 private:
  using Magic = std::array<std::uint8_t, 4>;

  static std::uint64_t header_bytes(int dimensions) {
    return 4 + 4 * static_cast<std::uint64_t>(dimensions);
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(name_ + ": " + what); }

  [[noreturn]] void fail_truncated(std::uint64_t expected, std::uint64_t found) const {
    fail("truncated: expected " + std::to_string(expected) + " bytes, found " +
         std::to_string(found) + "; fetch the file again");
  }

  void read_piece(std::span<std::uint8_t> bytes, std::uint64_t offset, std::uint64_t expected) {
    const std::size_t got = source_.read(bytes);
    if (got < bytes.size()) fail_truncated(expected, offset + got);
    if (observer_) observer_(bytes);
  }

  Magic read_magic(std::uint64_t expected) {
    Magic magic{};
    read_piece(magic, 0, expected);
    return magic;
  }

  void require_magic(const Magic& magic, int dimensions) const {
    const Magic wanted{0, 0, kTypeU8, static_cast<std::uint8_t>(dimensions)};
    if (magic == wanted) return;
    const char* type = name_of_type(magic[2]);
    const std::string expected = "expected the magic number " + hex(wanted) + " (u8, " +
                                 std::to_string(dimensions) + " dimensions), found " + hex(magic);
    if (magic[0] != 0 || magic[1] != 0 || type == nullptr)
      fail("not an IDX file: " + expected + "; name files in MNIST's format");
    fail(expected + " (" + type + ", " + std::to_string(magic[3]) + " dimensions)" +
         (magic[2] != kTypeU8 ? "; only u8 can be read" : "; are images and labels mixed up?"));
  }

  /// Returns the product of the sizes, checked against what the source may hold.
  std::uint64_t read_sizes(int dimensions, std::vector<std::int64_t>& sizes) {
    std::vector<std::uint8_t> raw(4 * static_cast<std::size_t>(dimensions));
    read_piece(raw, 4, header_bytes(dimensions));
    for (std::size_t i = 0; i < raw.size(); i += 4) {
      sizes.push_back(std::int64_t{raw[i]} << 24 | raw[i + 1] << 16 | raw[i + 2] << 8 | raw[i + 3]);
    }
    const std::uint64_t bytes = checked_bytes(sizes);
    require_length(header_bytes(dimensions) + bytes);
    return bytes;
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
    const std::optional<std::uint64_t> found = source_.size();
    if (!found) return;
    if (*found < expected) fail_truncated(expected, *found);
    if (*found > expected) {
      fail("oversized: expected " + std::to_string(expected) + " bytes, found " +
           std::to_string(*found) + "; fetch the file again");
    }
  }

  std::uint64_t within_memory(std::uint64_t bytes) const {
    if (bytes <= usable_memory()) return bytes;
    fail("its " + std::to_string(bytes) + " bytes are more than this machine's memory (" +
         std::to_string(usable_memory()) + "); take a part of the data");
  }

  void read_values(std::uint64_t bytes, std::uint64_t offset, std::vector<std::uint8_t>& values) {
    const std::uint64_t trusted = source_.size() ? bytes : kTrustedBytes;
    values.resize(within_memory(std::min({bytes, trusted, source_.at_most()})));
    for (std::uint64_t done = 0; done < bytes;) {
      if (done == values.size()) values.resize(within_memory(std::min(bytes, 2 * done)));
      const std::size_t piece = std::min<std::uint64_t>(kReadAtOnce, values.size() - done);
      read_piece({values.data() + done, piece}, offset + done, offset + bytes);
      done += piece;
    }
  }

  void require_end(std::uint64_t expected) {
    std::uint8_t extra = 0;
    if (source_.read({&extra, 1}) == 0) return;
    fail("oversized: expected " + std::to_string(expected) +
         " bytes, found more; fetch the file again");
  }

  const std::string& name_;
  const RawBytesObserver& observer_;
  ByteSource& source_;
};

}  // namespace

IdxArray read_idx(const fs::path& file, int dimensions, const RawBytesObserver& observer) {
  return read_idx(*open_bytes(file), file.string(), dimensions, observer);
}

IdxArray read_idx(ByteSource& source, const std::string& name, int dimensions,
                  const RawBytesObserver& observer) {
  return IdxReader(source, name, observer).read(dimensions);
}

bool looks_like_idx(std::span<const std::uint8_t> head) {
  return head.size() >= 4 && head[0] == 0 && head[1] == 0 && name_of_type(head[2]) != nullptr &&
         head[3] > 0;
}

void scan_idx(ByteSource& source, const std::string& name, const IdxPieces& pieces) {
  IdxReader(source, name, {}).scan(pieces);
}

}  // namespace ringlet::data
