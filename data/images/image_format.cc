#include "data/images/image_format.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace ringlet::data {

namespace {

using Bytes = std::span<const std::uint8_t>;

template <std::size_t N>
bool starts_with(Bytes file, const std::array<std::uint8_t, N>& magic) {
  return file.size() >= N && std::equal(magic.begin(), magic.end(), file.begin());
}

constexpr std::array<std::uint8_t, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 3> kJpeg{0xFF, 0xD8, 0xFF};
constexpr std::array<std::uint8_t, 2> kBmp{'B', 'M'};
constexpr std::array<std::uint8_t, 2> kGrey{'P', '5'};
constexpr std::array<std::uint8_t, 2> kColour{'P', '6'};

constexpr std::array<std::uint8_t, 4> kRiff{'R', 'I', 'F', 'F'};
constexpr std::array<std::uint8_t, 4> kWebp{'W', 'E', 'B', 'P'};  // behind the length

constexpr const char* kBreaksOff = "bytes are missing at its end";

constexpr std::uint8_t kStartOfScan = 0xDA;  // a JPEG's marker

/// The Huffman tables that a JPEG has defined so far. stb does not check: for a table that was
/// never defined it takes whatever lies in memory.
class HuffmanTables {
 public:
  /// Tables of a class and number, sixteen counts of codes by their length, a byte for each code.
  bool define(Bytes segment) {
    constexpr std::size_t kCounts = 16, kMostCodes = 256;
    while (segment.size() > kCounts) {
      const Bytes counts = segment.subspan(1, kCounts);
      const auto codes = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      if (codes > kMostCodes || 1 + kCounts + codes > segment.size()) return false;
      known_[segment[0] % known_.size()] = true;
      segment = segment.subspan(1 + kCounts + codes);
    }
    return segment.empty();
  }

  /// A scan's header: the number of components, for each its number and its tables (DC's and AC's),
  /// then the first and the last coefficient.
  bool has_those_of(Bytes scan) const {
    constexpr std::size_t kRest = 3;
    constexpr unsigned kOfAc = 0x10, kLow = 0x0F;
    if (scan.empty() || scan.size() < 1 + std::size_t{2} * scan[0] + kRest) return false;
    const std::uint8_t first = scan[1 + 2 * scan[0]], last = scan[2 + 2 * scan[0]];
    for (std::size_t i = 0; i < scan[0]; ++i) {
      const unsigned tables = scan[2 + 2 * i];
      if (first == 0 && !known_[tables >> 4]) return false;
      if (last > 0 && !known_[kOfAc | (tables & kLow)]) return false;
    }
    return true;
  }

 private:
  std::array<bool, 32> known_{};  // by class (16: AC) and number
};

/// Whether a JPEG's marker begins a frame: SOF0 to SOF15, between which three others stand.
bool is_frame(std::uint8_t marker) {
  constexpr std::uint8_t kFirst = 0xC0, kLast = 0xCF, kTables = 0xC4, kReserved = 0xC8,
                         kConditions = 0xCC;
  return marker >= kFirst && marker <= kLast && marker != kTables && marker != kReserved &&
         marker != kConditions;
}

const char* unread_frame(std::uint8_t marker, Bytes segment) {
  constexpr std::uint8_t kLastRead = 0xC2, kFirstArithmetic = 0xC9, kBits = 8;
  if (marker >= kFirstArithmetic) return "an arithmetic-coded JPEG";
  if (marker > kLastRead) return "a lossless or hierarchical JPEG";
  return segment.empty() || segment[0] == kBits ? nullptr : "a JPEG of more than 8 bits a sample";
}

/// What the four components of a JPEG are. stb takes those of which Adobe's marker does not say it
/// for YCbCr and leaves the fourth out; libjpeg takes them for CMYK.
class JpegColours {
 public:
  void look_at(std::uint8_t marker, Bytes segment) {
    constexpr std::uint8_t kAdobe = 0xEE;
    constexpr std::array<std::uint8_t, 5> kName{'A', 'd', 'o', 'b', 'e'};
    constexpr std::size_t kTransform = 11, kComponents = 5;
    if (is_frame(marker) && segment.size() > kComponents) components_ = segment[kComponents];
    if (marker == kAdobe && segment.size() > kTransform && starts_with(segment, kName)) {
      transform_ = segment[kTransform];
    }
  }
  const char* unread() const {
    constexpr int kCmyk = 0, kYcck = 2;
    const bool says = transform_ == kCmyk || transform_ == kYcck;
    return components_ == 4 && !says
               ? "a JPEG of four colours, of which Adobe's marker says nothing"
               : nullptr;
  }

 private:
  int components_ = 0, transform_ = -1;
};

/// Walks the markers (ITU-T T.81, annex B): in coded data a byte FF stands before 00 or before one
/// of the restart markers; any other marker ends it. Calls visit(marker, segment) until that gives
/// a defect, and returns it.
template <class Visit>
const char* walk_jpeg(Bytes file, Visit visit) {
  constexpr std::uint8_t kEnd = 0xD9, kFirstRestart = 0xD0, kLastRestart = 0xD7;
  bool coded = false;
  for (std::size_t at = 2; at + 1 < file.size();) {
    const std::uint8_t marker = file[at + 1];
    if (file[at] != 0xFF) {  // coded data
      const void* next = std::memchr(file.data() + at, 0xFF, file.size() - at);
      if (next == nullptr) return kBreaksOff;
      at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(next) - file.data());
      continue;
    }
    if (marker == 0xFF) {  // filling
      ++at;
      continue;
    }
    if (marker == kEnd) return nullptr;
    const bool restart = marker >= kFirstRestart && marker <= kLastRestart;
    if ((coded && marker == 0) || restart) {
      at += 2;
      continue;
    }
    if (at + 3 >= file.size()) return kBreaksOff;
    const std::size_t length = std::size_t{file[at + 2]} << 8 | file[at + 3];  // counts itself
    if (length < 2) return "a segment has no length";
    if (at + 2 + length > file.size()) return kBreaksOff;
    const char* defect = visit(marker, file.subspan(at + 4, length - 2));
    if (defect != nullptr) return defect;
    coded = marker == kStartOfScan;
    at += 2 + length;
  }
  return kBreaksOff;
}

/// The little-endian number of `count` bytes at `at`.
std::uint64_t number_at(Bytes file, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | file[at + i];
  return value;
}

/// Rows are padded to four bytes; only uncompressed pixels are decoded.
const char* bmp_defect(Bytes file) {
  constexpr std::size_t kHeaders = 30;  // up to the bits a pixel
  constexpr std::uint64_t kOldHeader = 12;
  if (file.size() < kHeaders) return kBreaksOff;
  const bool old = number_at(file, 14, 4) == kOldHeader;
  const std::uint64_t begin = number_at(file, 10, 4);
  const std::uint64_t width = old ? number_at(file, 18, 2) : number_at(file, 18, 4);
  const auto signed_height = static_cast<std::int32_t>(number_at(file, 22, 4));
  const std::uint64_t height =
      old ? number_at(file, 20, 2) : static_cast<std::uint64_t>(std::llabs(signed_height));
  const std::uint64_t bits = old ? number_at(file, 24, 2) : number_at(file, 28, 2);
  return begin + (width * bits + 31) / 32 * 4 * height <= file.size() ? nullptr : kBreaksOff;
}

/// The big-endian number at `at`.
std::uint32_t png_number_at(Bytes file, std::size_t at) {
  return std::uint32_t{file[at]} << 24 | std::uint32_t{file[at + 1]} << 16 |
         std::uint32_t{file[at + 2]} << 8 | file[at + 3];
}

/// Chunks of a length, a type, that many bytes and the CRC-32 of type and bytes, up to the one
/// called IEND. A chunk whose type begins with a small letter may be wrong: pixels do not depend on
/// it (PNG, 5.4), and libpng passes over it.
const char* png_defect(Bytes file) {
  constexpr std::size_t kType = 4, kSum = 4, kAround = 12;  // bytes; beside a chunk's content
  constexpr std::array<std::uint8_t, 4> kEnd{'I', 'E', 'N', 'D'};
  constexpr std::uint8_t kSmall = 0x20;
  for (std::size_t at = kPng.size(); at + kAround <= file.size();) {
    const std::size_t length = png_number_at(file, at);
    if (length > file.size() - at - kAround) break;
    const Bytes chunk = file.subspan(at + kAround - kType - kSum, kType + length);
    at += kAround + length;
    if (starts_with(chunk, kEnd)) return nullptr;
    const bool matters = (chunk[0] & kSmall) == 0;
    if (matters && crc32_z(0, chunk.data(), chunk.size()) != png_number_at(file, at - kSum)) {
      return "the sum of one of its chunks is wrong";
    }
  }
  return kBreaksOff;
}

}  // namespace

const char* unread_bmp(Bytes file) {
  constexpr std::size_t kHow = 30;
  constexpr std::uint64_t kOldHeader = 12, kByMasks = 3, kLast = 6;  // 0: as they are
  constexpr std::array<std::uint64_t, 5> kHeaders{kOldHeader, 40, 56, 108, 124};
  if (file.size() < kHow + 4) return nullptr;
  const std::uint64_t header = number_at(file, 14, 4);
  if (std::ranges::find(kHeaders, header) == kHeaders.end()) return "a BMP with a rare header";
  if (header == kOldHeader) return nullptr;
  const std::uint64_t how = number_at(file, kHow, 4);
  return how > 0 && how <= kLast && how != kByMasks ? "a compressed BMP" : nullptr;
}

const char* name_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::png:
      return "PNG";
    case ImageFormat::jpeg:
      return "JPEG";
    case ImageFormat::bmp:
      return "BMP";
    case ImageFormat::webp:
      return "WebP";
    case ImageFormat::pnm:
      return "PGM or PPM";
    case ImageFormat::unknown:
      break;
  }
  return "unknown";
}

ImageFormat image_format(Bytes file) {
  if (starts_with(file, kPng)) return ImageFormat::png;
  if (starts_with(file, kJpeg)) return ImageFormat::jpeg;
  if (starts_with(file, kBmp)) return ImageFormat::bmp;
  if (file.size() > 8 && starts_with(file, kRiff) && starts_with(file.subspan(8), kWebp)) {
    return ImageFormat::webp;
  }
  if (starts_with(file, kGrey) || starts_with(file, kColour)) return ImageFormat::pnm;
  return ImageFormat::unknown;
}

JpegOutline outline_of_jpeg(Bytes file) {
  constexpr std::uint8_t kHuffman = 0xC4, kProgressive = 0xC2;
  JpegOutline outline;
  HuffmanTables tables;
  JpegColours colours;
  outline.defect = walk_jpeg(file, [&](std::uint8_t marker, Bytes segment) -> const char* {
    if (marker == kHuffman && !tables.define(segment)) return "a Huffman table has too many codes";
    outline.progressive |= marker == kProgressive;
    if (is_frame(marker)) outline.unread = unread_frame(marker, segment);
    colours.look_at(marker, segment);
    if (marker != kStartOfScan) return nullptr;
    ++outline.scans;
    if (outline.unread == nullptr) outline.unread = colours.unread();
    if (outline.unread != nullptr) return nullptr;
    return tables.has_those_of(segment) ? nullptr : "a scan has no Huffman table";
  });
  return outline;
}

const char* defect_of(ImageFormat format, Bytes file) {
  switch (format) {
    case ImageFormat::jpeg:
      return outline_of_jpeg(file).defect;
    case ImageFormat::bmp:
      return bmp_defect(file);
    case ImageFormat::png:
      return png_defect(file);
    case ImageFormat::webp:
    case ImageFormat::pnm:
    case ImageFormat::unknown:
      break;
  }
  return nullptr;
}

}  // namespace ringlet::data
