#include "data/pair_images.h"

#include <algorithm>
#include <utility>

#include "data/images/picture_reader.h"
#include "data/images/resample.h"
#include "data/picture_dataset.h"

namespace ringlet::data {

namespace {

/// Writes the middle of a picture that covers `width` x `height`.
void write_covering(const RgbxView& picture, int width, int height, bool mirrored,
                    std::uint8_t* planes) {
  thread_local Resampler resampler;
  const ResampleTarget target{planes, 3, mirrored};
  if (picture.width == width && picture.height == height) return write_planes(picture, target);
  const std::int64_t across = std::int64_t{picture.width} * height;
  const std::int64_t down = std::int64_t{picture.height} * width;
  const bool is_wide = across >= down;
  const int w = is_wide ? std::max(width, static_cast<int>(across / picture.height)) : width;
  const int h = is_wide ? height : std::max(height, static_cast<int>(down / picture.width));
  resampler.resize(picture, w, h, {(w - width) / 2, (h - height) / 2, width, height}, target);
}

std::uint8_t luma(unsigned red, unsigned green, unsigned blue) {
  constexpr unsigned kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 0x8000;
  return static_cast<std::uint8_t>((kRed * red + kGreen * green + kBlue * blue + kHalf) >> 16);
}

}  // namespace

PairImages::PairImages(std::shared_ptr<const Pairs> pairs, std::vector<std::int64_t> chosen,
                       const PairImagesOptions& options)
    : Dataset({.name = pairs->file(),
               .channels = options.channels,
               .height = options.height,
               .width = options.width,
               .target_names = {"any"}},
              std::vector<std::int32_t>(static_cast<std::size_t>(samples_of_pair(options.mirrored) *
                                                                 std::ssize(chosen)))),
      pairs_(std::move(pairs)),
      chosen_(std::move(chosen)),
      options_(options) {}

std::int64_t PairImages::picture_of(std::int64_t index) const {
  const std::int64_t each = samples_of_pair(options_.mirrored);
  return 2 * chosen_[static_cast<std::size_t>(index / each)] + index % each / (each / 2);
}

std::string PairImages::picture_name(std::int64_t index) const {
  return pairs_->picture_name(picture_of(index));
}

void PairImages::read(std::int64_t index, std::span<std::uint8_t> out) const {
  require_sample(index);
  thread_local std::vector<std::uint8_t> kept, colours;
  const std::int64_t picture = picture_of(index);
  const bool mirrored = options_.mirrored && index % 2 == 1;
  PictureReader& reader = reader_of_this_thread();
  const LetGo let_go(reader);
  const RgbxView view =
      reader.decode(pairs_->picture(picture, kept), pairs_->picture_name(picture), options_.exif);
  if (options_.channels == 3) {
    return write_covering(view, options_.width, options_.height, mirrored, out.data());
  }
  colours.resize(3 * out.size());
  write_covering(view, options_.width, options_.height, mirrored, colours.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = luma(colours[i], colours[out.size() + i], colours[2 * out.size() + i]);
  }
}

}  // namespace ringlet::data
