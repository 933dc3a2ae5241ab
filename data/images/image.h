// Pictures from files: PNG, JPEG and BMP, decoded by stb_image, WebP by libwebp (webp.h), and PGM
// and PPM (pnm.h). A JPEG is turned as its camera was held (exif.h).
//
// A file is taken from memory, whole, and examined before it is decoded: its kind by its first
// bytes, its size by its header, and whether it ends where it should. So a file of a few bytes that
// would unpack to gigabytes gets no further than a message, and neither does half a download. What
// takes much memory to decode waits for its share (decode_share.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringlet::data {

/// Decoded pixels, 8 bits each: of a PNG's 16 the higher, of PGM and PPM the nearest.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;                  ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::vector<std::uint8_t> pixels;  ///< [height, width, channels]
  int orientation = 1;  ///< of the file, see data/images/exif.h; the pixels are upright
};

/// What is refused before anything is decoded.
struct ImageLimits {
  std::uint64_t file_bytes = std::uint64_t{1} << 30;
  int side = 20'000;  ///< pixels of width or height
  std::int64_t pixels = 250'000'000;
  int scans = 100;                              ///< of a JPEG; cameras and programs write a dozen
  std::int64_t scanned_pixels = 4'000'000'000;  ///< of a JPEG: pixels times scans
  std::uint64_t memory = 0;                     ///< bytes that decoding may take; 0: what is free
};

/// In pixels.
struct PictureExtents {
  int width = 0, height = 0;
};

/// Decodes the file's content. `name` is for messages. Safe for any bytes, and from several
/// threads. Throws DataError in one line: the name, what is wrong, the remedy.
Image decode_image(std::span<const std::uint8_t> file, const std::string& name,
                   const ImageLimits& limits = {});

/// Reads a regular file into `bytes`, whose memory is used again. Throws DataError as above.
void read_picture_file(const std::filesystem::path& file, const ImageLimits& limits,
                       std::vector<std::uint8_t>& bytes);

/// Reads a regular file and decodes it. Throws DataError as above.
Image load_image(const std::filesystem::path& file, const ImageLimits& limits = {});

/// Reads the beginning of a regular file, or all of a small one, into `bytes`, whose memory is used
/// again. Throws DataError as above for what shows there: no picture, one that is too large, a
/// header that is damaged, a small file that is cut off. Pixels are not decoded. Gives width and
/// height, not turned as Exif says.
PictureExtents look_at_picture(const std::filesystem::path& file, std::vector<std::uint8_t>& bytes,
                               const ImageLimits& limits = {});

/// Whether a file's name ends as those of images that can be read (".png", ".JPG").
bool has_image_name(const std::filesystem::path& file);

/// ".heic" where a file's name ends as those of pictures that cannot be read.
std::optional<std::string> foreign_ending(const std::filesystem::path& file);

}  // namespace ringlet::data
