#include "data/images/image.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <limits>
#include <mutex>
#include <system_error>

#include "base/data_error.h"
#include "base/shared_library.h"
#include "data/images/decode_bytes.h"
#include "data/images/decode_share.h"
#include "data/images/exif.h"
#include "data/images/image_format.h"
#include "data/images/picture_reader.h"
#include "data/images/pnm.h"
#include "data/images/stb.h"
#include "data/images/webp.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw DataError(name + ": " + what);
}

void check_bytes(std::uint64_t bytes, const std::string& name, const ImageLimits& limits) {
  constexpr std::uint64_t kMostOfStb = std::numeric_limits<int>::max();
  const std::uint64_t most = std::min(limits.file_bytes, kMostOfStb);
  if (bytes <= most) return;
  fail(name, "the file has " + std::to_string(bytes) + " bytes, more than the " +
                 std::to_string(most) + " that an image may have; make it smaller");
}

void check_extents(std::int64_t width, std::int64_t height, const std::string& name,
                   const ImageLimits& limits) {
  if (width < 1 || height < 1) fail(name, "the image has no pixels; save it again");
  if (width <= limits.side && height <= limits.side && width * height <= limits.pixels) return;
  fail(name, "the image has " + std::to_string(width) + " x " + std::to_string(height) +
                 " pixels; at most " + std::to_string(limits.pixels) + " in all and " +
                 std::to_string(limits.side) + " a side are taken; make it smaller");
}

/// The most memory that a decoder may take: a few times the pixels. Beyond that the file unpacks to
/// something else than its header says. Blocks of JPEG and the passes of interlaced PNG round up.
std::size_t memory_for(const StbHeader& header) {
  constexpr std::size_t kBytesOfPixel = 16, kRounding = 32, kSlack = std::size_t{1} << 20;
  return (static_cast<std::size_t>(header.width) + kRounding) *
             (static_cast<std::size_t>(header.height) + kRounding) * kBytesOfPixel +
         kSlack;
}

/// stb's messages quote parts of the file as they are, whatever their bytes.
std::string printable(std::string text) {
  const auto is_odd = [](unsigned char c) { return c < ' ' || c > '~'; };
  std::replace_if(text.begin(), text.end(), is_odd, '?');
  return text;
}

std::string damaged(ImageFormat format, const std::string& why) {
  return std::string("the ") + name_of(format) + " file is cut off or damaged (" + printable(why) +
         "); fetch or save it again";
}

[[noreturn]] void fail_decoding(ImageFormat format, const std::string& name, const char* why) {
  if (why == kNoMemory) fail(name, "no memory is left to decode the image; make it smaller");
  fail(name, damaged(format, why));
}

/// What decoding takes at most; `copies`: bytes a pixel that the caller needs besides.
DecodeShare share_for(ImageFormat format, std::span<const std::uint8_t> file, std::int64_t width,
                      std::int64_t height, int channels, std::uint64_t copies,
                      const std::string& name, const ImageLimits& limits) {
  const auto pixels = static_cast<std::uint64_t>(width * height);
  return {decode_bytes(format, file, pixels, channels) + copies * pixels, name, limits.memory};
}

PnmHeader checked_pnm_header(std::span<const std::uint8_t> file, const std::string& name,
                             const ImageLimits& limits) {
  const PnmHeader header = pnm_header(file);
  if (header.failure != nullptr) fail(name, damaged(ImageFormat::pnm, header.failure));
  check_extents(header.width, header.height, name, limits);
  return header;
}

Image decode_pnm(std::span<const std::uint8_t> file, const PnmHeader& header,
                 const std::string& name) {
  Image image{static_cast<int>(header.width), static_cast<int>(header.height), header.channels, {}};
  const char* failure = pnm_decode(file, header, image);
  if (failure != nullptr) fail(name, damaged(ImageFormat::pnm, failure));
  return image;
}

[[noreturn]] void fail_unread(const std::string& name, const char* kind) {
  fail(name, std::string("is ") + kind + ", which is not read; save it as PNG");
}

/// The format's defect; and throws DataError for a JPEG that is not read, or of many scans.
/// `scans`: how many it has.
const char* checked_defect(ImageFormat format, std::span<const std::uint8_t> file,
                           const std::string& name, const ImageLimits& limits, int& scans) {
  if (format != ImageFormat::jpeg) return defect_of(format, file);
  const JpegOutline outline = outline_of_jpeg(file);
  if (outline.unread != nullptr) fail_unread(name, outline.unread);
  scans = outline.scans;
  if (outline.scans > limits.scans) {
    fail(name, "the JPEG file has " + std::to_string(outline.scans) +
                   " scans, each of which takes time; at most " + std::to_string(limits.scans) +
                   " are taken; save it again");
  }
  return outline.defect;
}

/// Throws DataError for a JPEG that goes over too many pixels too often.
void check_work(const StbHeader& header, int scans, const std::string& name,
                const ImageLimits& limits) {
  const std::int64_t pixels = std::int64_t{header.width} * header.height;
  if (pixels * scans <= limits.scanned_pixels) return;
  fail(name, "the JPEG file goes over its " + std::to_string(pixels) + " pixels in " +
                 std::to_string(scans) + " scans, which takes long; at most " +
                 std::to_string(limits.scanned_pixels) + " in all are taken; save it again");
}

/// Throws DataError for what stb should not see.
StbHeader checked_header(ImageFormat format, std::span<const std::uint8_t> file,
                         const std::string& name, const ImageLimits& limits) {
  if (format == ImageFormat::bmp && unread_bmp(file) != nullptr) {
    fail_unread(name, unread_bmp(file));
  }
  int scans = 0;
  const char* defect = checked_defect(format, file, name, limits, scans);
  if (defect != nullptr) fail(name, damaged(format, defect));
  const StbHeader header = stb_header(file);
  if (header.failure != nullptr) {
    fail(name, damaged(format, std::string(header.failure) + ", or far too large"));
  }
  check_extents(header.width, header.height, name, limits);
  check_work(header, scans, name, limits);
  return header;
}

/// Throws DataError for a WebP that libwebp should not see, and where there is no libwebp.
void require_webp(std::span<const std::uint8_t> file, const std::string& name) {
  if (!reads_webp() && !opens_libraries()) {
    fail(name,
         "is a WebP picture, which the program as one file does not read; install Ringlet's .deb "
         "and libwebp7, or save the picture as PNG");
  }
  if (!reads_webp()) {
    fail(name,
         "is a WebP picture, and libwebp, which reads them, is not here; install it (sudo apt-get "
         "install libwebp7), or save the picture as PNG");
  }
  if (is_animated_webp(file)) {
    fail(name, "is an animated WebP, and one picture is wanted; save a frame of it as PNG");
  }
}

WebpHeader checked_webp(std::span<const std::uint8_t> file, const std::string& name,
                        const ImageLimits& limits) {
  require_webp(file, name);
  const char* defect = webp_defect(file);
  if (defect != nullptr) fail(name, damaged(ImageFormat::webp, defect));
  const WebpHeader header = webp_header(file);
  if (header.failure != nullptr) fail(name, damaged(ImageFormat::webp, header.failure));
  check_extents(header.width, header.height, name, limits);
  return header;
}

/// [height, width, channels]; 3 and 4 are decoded at no more cost.
void decode_webp(std::span<const std::uint8_t> file, const WebpHeader& header, int channels,
                 const std::string& name, std::vector<std::uint8_t>& pixels) {
  pixels.resize(static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.height) *
                static_cast<std::size_t>(channels));
  const char* failure = webp_decode(file, header, channels, pixels);
  if (failure != nullptr) fail_decoding(ImageFormat::webp, name, failure);
}

ImageFormat checked_format(std::span<const std::uint8_t> file, const std::string& name,
                           const ImageLimits& limits) {
  check_bytes(file.size(), name, limits);
  if (file.empty()) fail(name, "the file is empty; save the image again");
  const ImageFormat format = image_format(file);
  if (format == ImageFormat::unknown) {
    fail(name,
         "is no image that can be read; save it as PNG, JPEG, WebP, BMP, PGM (P5) or PPM (P6)");
  }
  return format;
}

/// In small letters.
std::string ending_of(const fs::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

/// Red, green and blue of pixels of 1 to 4 channels.
void spread(const Image& image, std::vector<std::uint8_t>& rgbx) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t count = image.pixels.size() / channels;
  const bool grey = channels < 3;
  rgbx.resize(count * kRgbxBytes);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      rgbx[i * kRgbxBytes + c] = image.pixels[i * channels + (grey ? 0 : c)];
    }
  }
}

Image decode_by_stb(ImageFormat format, std::span<const std::uint8_t> file, const std::string& name,
                    const ImageLimits& limits) {
  const StbHeader header = checked_header(format, file, name, limits);
  constexpr std::uint64_t kCopies = 2 * kRgbxBytes;  // of its channels, and turned upright
  const DecodeShare share =
      share_for(format, file, header.width, header.height, header.channels, kCopies, name, limits);
  Image image{header.width, header.height, header.channels, {}};
  const char* failure = stb_decode(file, memory_for(header), image);
  if (failure != nullptr) fail_decoding(format, name, failure);
  const int orientation = format == ImageFormat::jpeg ? exif_orientation(file) : 1;
  return orientation == 1 ? image : upright(image, orientation);
}

}  // namespace

Image decode_image(std::span<const std::uint8_t> file, const std::string& name,
                   const ImageLimits& limits) {
  const ImageFormat format = checked_format(file, name, limits);
  if (format == ImageFormat::webp) {
    const WebpHeader header = checked_webp(file, name, limits);
    const DecodeShare share =
        share_for(format, file, header.width, header.height, header.channels, 0, name, limits);
    Image image{header.width, header.height, header.channels, {}};
    decode_webp(file, header, header.channels, name, image.pixels);
    return image;
  }
  if (format != ImageFormat::pnm) return decode_by_stb(format, file, name, limits);
  const PnmHeader header = checked_pnm_header(file, name, limits);
  const DecodeShare share =
      share_for(format, file, header.width, header.height, header.channels, 0, name, limits);
  return decode_pnm(file, header, name);
}

namespace {

/// The bytes of a regular file.
std::uintmax_t size_of_picture(const fs::path& path, const ImageLimits& limits) {
  const std::string name = path.string();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none)
    fail(name, "cannot be opened: " + error.message() + "; check its permissions");
  if (!fs::exists(status)) fail(name, "there is no such file; check the path");
  if (!fs::is_regular_file(status)) fail(name, "is not a regular file; name a file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) fail(name, "has no size: " + error.message() + "; name another file");
  check_bytes(size, name, limits);
  return size;
}

void read_beginning(const fs::path& path, std::uintmax_t size, std::vector<std::uint8_t>& bytes) {
  const std::string name = path.string();
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    fail(name,
         "cannot be opened: " + std::generic_category().message(errno) + "; check its permissions");
  }
  bytes.resize(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(stream.gcount()) != size)
    fail(name, "cannot be read; check the disk");
}

}  // namespace

void read_picture_file(const fs::path& path, const ImageLimits& limits,
                       std::vector<std::uint8_t>& bytes) {
  read_beginning(path, size_of_picture(path, limits), bytes);
}

namespace {

/// `bytes`: the beginning of a file of `size` bytes.
PictureExtents look_at_webp(const fs::path& path, std::uintmax_t size,
                            std::vector<std::uint8_t>& bytes, const ImageLimits& limits) {
  const std::string name = path.string();
  require_webp(bytes, name);
  if (size > bytes.size()) {
    const WebpHeader header = webp_header(bytes);
    if (header.failure == nullptr) {
      check_extents(header.width, header.height, name, limits);
      return {header.width, header.height};
    }
    read_beginning(path, size, bytes);  // so much may stand before its pixels
  }
  const WebpHeader header = checked_webp(bytes, name, limits);
  return {header.width, header.height};
}

}  // namespace

PictureExtents look_at_picture(const fs::path& path, std::vector<std::uint8_t>& bytes,
                               const ImageLimits& limits) {
  constexpr std::uintmax_t kBeginning = std::uintmax_t{64} << 10;
  const std::string name = path.string();
  const std::uintmax_t size = size_of_picture(path, limits);
  read_beginning(path, std::min(size, kBeginning), bytes);
  const ImageFormat format = checked_format(bytes, name, limits);
  if (format == ImageFormat::pnm) {
    const PnmHeader header = pnm_header(bytes);
    if (header.failure == nullptr) check_extents(header.width, header.height, name, limits);
    const char* defect = pnm_defect(header, size);
    if (defect != nullptr) fail(name, damaged(format, defect));
    return {static_cast<int>(header.width), static_cast<int>(header.height)};
  }
  if (format == ImageFormat::webp) return look_at_webp(path, size, bytes, limits);
  if (size > kBeginning) {
    const StbHeader header = stb_header(bytes);
    if (header.failure == nullptr) {
      check_extents(header.width, header.height, name, limits);
      return {header.width, header.height};
    }
    read_beginning(path, size, bytes);  // so much may stand before a JPEG's header
  }
  const StbHeader header = checked_header(format, bytes, name, limits);
  return {header.width, header.height};
}

Image load_image(const fs::path& path, const ImageLimits& limits) {
  std::vector<std::uint8_t> bytes;
  read_picture_file(path, limits, bytes);
  return decode_image(bytes, path.string(), limits);
}

RgbxView PictureReader::decode(std::span<const std::uint8_t> file, const std::string& name,
                               bool upright_by_exif, const ImageLimits& limits) {
  give_back();
  orientation_ = 1;
  const ImageFormat format = checked_format(file, name, limits);
  if (format == ImageFormat::pnm) {
    const PnmHeader header = checked_pnm_header(file, name, limits);
    share_ = share_for(format, file, header.width, header.height, header.channels, 0, name, limits);
    const Image image = decode_pnm(file, header, name);
    spread(image, turned_);
    return {turned_.data(), image.width, image.height, std::ptrdiff_t{image.width} * kRgbxBytes};
  }
  if (format == ImageFormat::webp) {
    const WebpHeader header = checked_webp(file, name, limits);
    share_ = share_for(format, file, header.width, header.height, header.channels, 0, name, limits);
    decode_webp(file, header, kRgbxBytes, name, turned_);
    return {turned_.data(), header.width, header.height, std::ptrdiff_t{header.width} * kRgbxBytes};
  }
  const StbHeader header = checked_header(format, file, name, limits);
  const bool may_turn = upright_by_exif && format == ImageFormat::jpeg;
  orientation_ = may_turn ? exif_orientation(file) : 1;
  const std::uint64_t copies = has_turned() ? kRgbxBytes : 0;
  share_ =
      share_for(format, file, header.width, header.height, header.channels, copies, name, limits);
  memory_.begin();
  const char* failure = stb_decode_rgbx(file, header, memory_for(header), &memory_, pixels_);
  if (failure != nullptr) fail_decoding(format, name, failure);
  const RgbxView view{pixels_.get(), header.width, header.height,
                      std::ptrdiff_t{header.width} * kRgbxBytes};
  return has_turned() ? upright(view, orientation_, turned_) : view;
}

RgbxView PictureReader::load(const fs::path& file, bool upright_by_exif,
                             const ImageLimits& limits) {
  static std::mutex large_files;  // is read before its share is known, so one at a time
  give_back();
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  std::unique_lock<std::mutex> alone;
  if (!error && bytes > kDecodedFreely && bytes <= limits.file_bytes) {
    alone = std::unique_lock(large_files);
    share_ = DecodeShare(bytes, file.string(), limits.memory);
  }
  read_picture_file(file, limits, file_);
  return decode(file_, file.string(), upright_by_exif, limits);
}

void PictureReader::give_back() {
  if (turned_.capacity() > kDecodedFreely) std::vector<std::uint8_t>().swap(turned_);
  pixels_ = StbPixels();
  share_ = DecodeShare();
}

void PictureReader::let_go() {
  if (share_.is_free()) return;
  if (file_.capacity() > kDecodedFreely) std::vector<std::uint8_t>().swap(file_);
  give_back();
}

bool has_image_name(const fs::path& file) {
  constexpr std::array kEndings{".png",  ".jpg", ".jpeg", ".jfif", ".jpe",
                                ".webp", ".bmp", ".pgm",  ".ppm",  ".pnm"};
  return std::find(kEndings.begin(), kEndings.end(), ending_of(file)) != kEndings.end();
}

std::optional<std::string> foreign_ending(const fs::path& file) {
  constexpr std::array kEndings{".gif", ".tif", ".tiff", ".heic", ".heif", ".avif",
                                ".jp2", ".jxl", ".pbm",  ".tga",  ".ico",  ".svg",
                                ".psd", ".dng", ".cr2",  ".nef",  ".arw",  ".raw"};
  const std::string ending = ending_of(file);
  if (std::find(kEndings.begin(), kEndings.end(), ending) == kEndings.end()) return {};
  return ending;
}

}  // namespace ringlet::data
