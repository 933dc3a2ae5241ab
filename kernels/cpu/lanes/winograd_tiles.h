// Tiles of Winograd's convolution: which pixels each has, and where its points lie.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/shape.h"
#include "kernels/tensor.h"

namespace ringlet::lanes {

inline constexpr std::int64_t kWinogradPoints = 36;
inline constexpr std::int64_t kTileInputs = 6;  // along each axis
inline constexpr std::int64_t kTileOutputs = 4;

/// Pixels [first, first + length) of an axis, of which [0, extent) exist.
struct PixelRange {
  PixelRange(std::int64_t first, std::int64_t length, std::int64_t extent)
      : begin(std::max<std::int64_t>(0, first)),
        before(begin - first),
        count(std::min(extent, first + length) - begin) {}
  std::int64_t begin, before, count;
};

/// A tensor [blocks][channels][height][width][16] that tiles are cut from.
struct TiledImage {
  explicit TiledImage(const Shape& shape)
      : channels(shape[1]), height(shape[2]), width(shape[3]), blocks(lane_blocks(shape[0])) {}

  std::int64_t offset(std::int64_t block, std::int64_t row, std::int64_t col) const {
    return ((block * channels * height + row) * width + col) * kLanes;
  }
  std::int64_t channels, height, width, blocks;
};

/// Two tensors between which a convolution goes. An item is a tile of a block of sixteen samples.
struct Tiling {
  TiledImage in, out;
  Extent2 padding;

  std::int64_t rows() const { return (out.height + kTileOutputs - 1) / kTileOutputs; }
  std::int64_t cols() const { return (out.width + kTileOutputs - 1) / kTileOutputs; }
  std::int64_t items() const { return out.blocks * rows() * cols(); }

  /// What a tile has of the input, and where that begins.
  WinogradTile input(std::int64_t item, std::int64_t& offset) const {
    const std::int64_t row = item / cols() % rows(), col = item % cols();
    return cut(in, item / (rows() * cols()),
               PixelRange(row * kTileOutputs - padding.h, kTileInputs, in.height),
               PixelRange(col * kTileOutputs - padding.w, kTileInputs, in.width), offset);
  }
  /// The same of the output.
  WinogradTile output(std::int64_t item, std::int64_t& offset) const {
    const std::int64_t row = item / cols() % rows(), col = item % cols();
    return cut(out, item / (rows() * cols()),
               PixelRange(row * kTileOutputs, kTileOutputs, out.height),
               PixelRange(col * kTileOutputs, kTileOutputs, out.width), offset);
  }

 private:
  static WinogradTile cut(const TiledImage& image, std::int64_t block, const PixelRange& rows,
                          const PixelRange& cols, std::int64_t& offset) {
    WinogradTile tile{};
    tile.image_channel = image.height * image.width * kLanes;
    tile.image_row = image.width * kLanes;
    tile.height = rows.count;
    tile.width = cols.count;
    tile.top = rows.before;
    tile.left = cols.before;
    tile.channels = image.channels;
    offset = image.offset(block, rows.begin, cols.begin);
    return tile;
  }
};

/// Points of tiles: [36][items][channels][16]. A line lies between two points, so that the 36 of a
/// tile do not meet in one set of the cache.
struct TilePoints {
  TilePoints(std::int64_t the_items, std::int64_t the_channels)
      : items(the_items), channels(the_channels) {}
  std::int64_t item() const { return channels * kLanes; }
  std::int64_t point() const { return items * item() + kLanes; }
  std::int64_t floats() const { return kWinogradPoints * point(); }
  std::int64_t items, channels;
};

/// A matrix at each point: [36][rows][pitch], with a line between two.
struct PointMatrix {
  PointMatrix(std::int64_t the_rows, std::int64_t the_pitch) : rows(the_rows), pitch(the_pitch) {}
  std::int64_t point() const { return rows * pitch + kLanes; }
  std::int64_t floats() const { return kWinogradPoints * point(); }
  std::int64_t rows, pitch;
};

}  // namespace ringlet::lanes
