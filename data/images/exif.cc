#include "data/images/exif.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ringlet::data {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr int kUpright = 1, kLastOrientation = 8;

/// Exif's segment, behind its name; empty if there is none. It stands before the first scan.
Bytes find_exif(Bytes jpeg) {
  constexpr std::uint8_t kApplication1 = 0xE1, kStartOfScan = 0xDA;
  constexpr std::array<std::uint8_t, 6> kName{'E', 'x', 'i', 'f', 0, 0};
  for (std::size_t at = 2; at + 4 <= jpeg.size() && jpeg[at] == 0xFF;) {
    const std::uint8_t marker = jpeg[at + 1];
    if (marker == 0xFF) {  // filling
      ++at;
      continue;
    }
    const std::size_t length = std::size_t{jpeg[at + 2]} << 8 | jpeg[at + 3];  // counts itself
    if (marker == kStartOfScan || length < 2 || at + 2 + length > jpeg.size()) break;
    const Bytes segment = jpeg.subspan(at + 4, length - 2);
    const bool named =
        segment.size() >= kName.size() && std::equal(kName.begin(), kName.end(), segment.begin());
    if (marker == kApplication1 && named) return segment.subspan(kName.size());
    at += 2 + length;
  }
  return {};
}

/// Numbers of a TIFF in its own order of bytes; 0 where it has ended.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) : bytes_(bytes) {}

  bool starts_well() const {
    const bool big = number(0, 2) == 0x4D4D, little = number(0, 2) == 0x4949;
    return (big || little) && number(2, 2) == 42;
  }
  std::uint64_t number(std::uint64_t at, std::size_t count) const {
    if (at + count > bytes_.size()) return 0;
    const bool big = bytes_[0] == 'M';
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      value = value << 8 | bytes_[at + (big ? i : count - 1 - i)];
    }
    return value;
  }

 private:
  Bytes bytes_;
};

/// Where the pixels of an upright picture lie in one of `orientation`.
class Turn {
 public:
  Turn(int orientation, int width, int height)
      : transposed_(orientation >= 5),
        from_right_(orientation == 2 || orientation == 3 || orientation >= 7),
        from_below_(orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7),
        from_width_(width),
        from_height_(height) {}

  int width() const { return transposed_ ? from_height_ : from_width_; }
  int height() const { return transposed_ ? from_width_ : from_height_; }
  /// Calls visit(x, y), the pixel's position in the file, row by row of the upright picture.
  template <class Visit>
  void visit(Visit visit) const {
    for (int y = 0; y < height(); ++y) {
      for (int x = 0; x < width(); ++x) {
        const int column = transposed_ ? y : x, row = transposed_ ? x : y;
        visit(from_right_ ? from_width_ - 1 - column : column,
              from_below_ ? from_height_ - 1 - row : row);
      }
    }
  }

 private:
  bool transposed_, from_right_, from_below_;
  int from_width_, from_height_;
};

}  // namespace

int exif_orientation(Bytes jpeg) {
  constexpr std::uint64_t kOrientation = 0x0112, kShort = 3, kLong = 4, kEntryBytes = 12;
  const Tiff tiff(find_exif(jpeg));
  if (!tiff.starts_well()) return kUpright;
  const std::uint64_t directory = tiff.number(4, 4);
  const std::uint64_t entries = tiff.number(directory, 2);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + i * kEntryBytes;
    const std::uint64_t type = tiff.number(entry + 2, 2);  // some cameras' is long
    if (tiff.number(entry, 2) != kOrientation || (type != kShort && type != kLong)) continue;
    const std::uint64_t value = tiff.number(entry + 8, type == kLong ? 4 : 2);
    return value >= kUpright && value <= kLastOrientation ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

Image upright(const Image& image, int orientation) {
  const Turn turn(orientation, image.width, image.height);
  Image result = image;
  result.orientation = orientation;
  result.width = turn.width();
  result.height = turn.height();
  const auto channels = static_cast<std::ptrdiff_t>(image.channels);
  auto to = result.pixels.begin();
  turn.visit([&](int x, int y) {
    const std::ptrdiff_t at = std::ptrdiff_t{y} * image.width + x;
    to = std::copy_n(image.pixels.begin() + at * channels, channels, to);
  });
  return result;
}

RgbxView upright(const RgbxView& image, int orientation, std::vector<std::uint8_t>& pixels) {
  const Turn turn(orientation, image.width, image.height);
  pixels.resize(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) *
                kRgbxBytes);
  std::uint8_t* to = pixels.data();
  turn.visit([&](int x, int y) {
    const std::ptrdiff_t at = y * image.row_bytes + std::ptrdiff_t{x} * kRgbxBytes;
    to = std::copy_n(image.pixels + at, kRgbxBytes, to);
  });
  return {pixels.data(), turn.width(), turn.height(), std::ptrdiff_t{turn.width()} * kRgbxBytes};
}

}  // namespace ringlet::data
