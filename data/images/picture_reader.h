// PictureReader: picture after picture in the memory of one thread, for training on thousands a
// second; image.h is for looking at one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/images/decode_share.h"
#include "data/images/image.h"
#include "data/images/rgbx.h"
#include "data/images/stb.h"

namespace ringlet::data {

/// Pictures become RGB as in Pillow's convert("RGB"): grey is repeated, alpha is dropped. Nothing
/// is allocated once the largest picture was seen, but for files that are damaged or PGM or PPM,
/// and pictures beyond DecodeMemory's limit. These take a share of what is free (decode_share.h),
/// and other threads may wait until let_go().
class PictureReader {
 public:
  /// The pixels of a file's content, good until the next call. `upright_by_exif`: a JPEG is turned
  /// as its Exif orientation says. Throws DataError as decode_image() does.
  RgbxView decode(std::span<const std::uint8_t> file, const std::string& name, bool upright_by_exif,
                  const ImageLimits& limits = {});
  /// The same for a regular file.
  RgbxView load(const std::filesystem::path& file, bool upright_by_exif,
                const ImageLimits& limits = {});
  /// Whether the last picture was turned.
  bool has_turned() const { return orientation_ != 1; }
  /// Gives back the memory of a large picture, whose pixels are no longer needed.
  void let_go();

 private:
  void give_back();

  std::vector<std::uint8_t> file_;    // its content
  std::vector<std::uint8_t> turned_;  // pixels that are not as the decoder left them
  DecodeMemory memory_;
  StbPixels pixels_;  // lies in memory_, or is the system's
  DecodeShare share_;
  int orientation_ = 1;  // exif.h
};

/// Lets go at its end of what `reader` reads in between.
class LetGo {
 public:
  explicit LetGo(PictureReader& reader) : reader_(reader) {}
  ~LetGo() { reader_.let_go(); }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

 private:
  PictureReader& reader_;
};

}  // namespace ringlet::data
