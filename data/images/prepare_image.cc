#include "data/images/prepare_image.h"

#include <algorithm>
#include <cmath>

#include "base/data_error.h"
#include "data/images/centre_crop.h"
#include "data/images/resample.h"
#include "data/images/stb.h"

namespace ringlet::data {

namespace {

constexpr int kWhite = 255;
constexpr double kMiddle = 0.5;
constexpr const char* kTurned = "turned upright, as its Exif data say";

bool has_alpha(const Image& image) { return image.channels == 2 || image.channels == 4; }

std::string size_of(int width, int height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

/// The same image with `channels` channels, each pixel made by `convert(source, destination)`.
template <class Convert>
Image converted(const Image& image, int channels, Convert convert) {
  Image result{image.width, image.height, channels, {}};
  const auto stride = static_cast<std::size_t>(image.channels);
  const std::size_t count = image.pixels.size() / stride;
  result.pixels.resize(count * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < count; ++i) {
    convert(&image.pixels[i * stride], &result.pixels[i * static_cast<std::size_t>(channels)]);
  }
  return result;
}

/// a p + (1 - a) white, rounded.
Image over_white(const Image& image) {
  const int colours = image.channels - 1;
  return converted(image, colours, [=](const std::uint8_t* from, std::uint8_t* to) {
    const int alpha = from[colours];
    for (int c = 0; c < colours; ++c) {
      const int sum = from[c] * alpha + kWhite * (kWhite - alpha);
      to[c] = static_cast<std::uint8_t>((sum + kWhite / 2) / kWhite);
    }
  });
}

/// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded.
Image to_grey(const Image& image) {
  constexpr int kRed = 299, kGreen = 587, kBlue = 114, kSum = 1000;
  return converted(image, 1, [](const std::uint8_t* from, std::uint8_t* to) {
    const int sum = kRed * from[0] + kGreen * from[1] + kBlue * from[2];
    *to = static_cast<std::uint8_t>((sum + kSum / 2) / kSum);
  });
}

Image repeated(const Image& image, int channels) {
  return converted(image, channels, [=](const std::uint8_t* from, std::uint8_t* to) {
    std::fill(to, to + channels, *from);
  });
}

/// The border's median in channel `c`.
std::uint8_t border_median(const Image& image, int c) {
  std::vector<std::uint8_t> border;
  const auto take = [&](int y, int x) {
    const auto at =
        (std::size_t(y) * std::size_t(image.width) + std::size_t(x)) * std::size_t(image.channels) +
        std::size_t(c);
    border.push_back(image.pixels[at]);
  };
  for (int x = 0; x < image.width; ++x) {
    take(0, x);
    take(image.height - 1, x);
  }
  for (int y = 0; y < image.height; ++y) {
    take(y, 0);
    take(y, image.width - 1);
  }
  const auto middle = border.begin() + static_cast<std::ptrdiff_t>(border.size() / 2);
  std::nth_element(border.begin(), middle, border.end());
  return *middle;
}

/// The border's median over all channels, from 0 to 1.
double ground_of(const Image& image) {
  double sum = 0;
  for (int c = 0; c < image.channels; ++c) sum += border_median(image, c);
  return sum / image.channels / kWhite;
}

/// Whether `ground` is farther from the background than the data set's own images are, towards the
/// brightness of what they show.
bool is_off(double ground, double background) {
  constexpr double kNoticeable = 0.08;
  return background > kMiddle ? ground < background - kNoticeable
                              : ground > background + kNoticeable;
}

/// Maps `ground` (0 to 1) to 0 and the 99.5th percentile to 1; the other way round where `light`.
void stretch_levels(std::vector<std::uint8_t>& pixels, double ground, bool light) {
  constexpr double kTop = 0.995;      // a few pixels that glare do not count
  constexpr double kLeastRange = 32;  // so that noise on an empty picture stays small
  const auto flip = [=](std::uint8_t value) {
    return light ? static_cast<std::uint8_t>(kWhite - value) : value;
  };
  std::vector<std::uint8_t> levels(pixels);
  for (std::uint8_t& level : levels) level = flip(level);
  const auto top =
      levels.begin() + static_cast<std::ptrdiff_t>(kTop * static_cast<double>(levels.size() - 1));
  std::nth_element(levels.begin(), top, levels.end());
  const double bottom = kWhite * (light ? 1 - ground : ground);
  const double scale = kWhite / std::max(*top - bottom, kLeastRange);
  for (std::uint8_t& pixel : pixels) {
    const double level = std::clamp((flip(pixel) - bottom) * scale, 0.0, double{kWhite});
    pixel = flip(static_cast<std::uint8_t>(std::lround(level)));
  }
}

bool is_whole_alpha(const Image& image) {
  const auto stride = static_cast<std::size_t>(image.channels);
  for (std::size_t i = stride - 1; i < image.pixels.size(); i += stride) {
    if (image.pixels[i] != kWhite) return false;
  }
  return true;
}

/// The largest size of the image's shape that fits.
Image fitted(const Image& image, const ImageTarget& target, std::vector<std::string>& steps) {
  const double scale = std::min(static_cast<double>(target.width) / image.width,
                                static_cast<double>(target.height) / image.height);
  const auto extent = [&](int from, int most) {
    return std::clamp(static_cast<int>(std::lround(from * scale)), 1, most);
  };
  const int width = extent(image.width, target.width);
  const int height = extent(image.height, target.height);
  if (width == image.width && height == image.height) return image;
  steps.push_back("scaled to " + size_of(width, height));
  return stb_resize(image, width, height);
}

/// The image in the middle of the target, channel by channel.
std::vector<std::uint8_t> placed(const Image& image, const ImageTarget& target) {
  const auto plane = std::size_t(target.height) * std::size_t(target.width);
  std::vector<std::uint8_t> pixels(plane * std::size_t(target.channels));
  const int top = (target.height - image.height) / 2, left = (target.width - image.width) / 2;
  for (int c = 0; c < target.channels; ++c) {
    std::uint8_t* to = pixels.data() + plane * std::size_t(c);
    std::fill(to, to + plane, border_median(image, c));
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        to[(top + y) * target.width + left + x] =
            image.pixels[std::size_t((y * image.width + x) * image.channels + c)];
      }
    }
  }
  return pixels;
}

Image with_channels(Image image, const ImageTarget& target, std::vector<std::string>& steps) {
  if (has_alpha(image)) {
    if (!is_whole_alpha(image)) steps.emplace_back("laid on white where it is transparent");
    image = over_white(image);
  }
  if (image.channels == 3 && target.channels == 1) {
    steps.emplace_back("made grey");
    return to_grey(image);
  }
  if (image.channels == 1 && target.channels > 1) {
    steps.emplace_back("grey taken for all " + std::to_string(target.channels) + " channels");
    return repeated(image, target.channels);
  }
  return image;
}

}  // namespace

PreparedImage prepare_photograph(const RgbxView& picture, int size, Invert invert, bool turned) {
  PreparedImage result;
  if (turned) result.steps.emplace_back(kTurned);
  const std::string middle = "the middle " + size_of(size, size) + " of it";
  if (picture.width != size || picture.height != size) {
    result.steps.push_back("scaled to a shorter side of " +
                           std::to_string(resized_short_edge(size)) + ", " + middle);
  }
  result.pixels.resize(std::size_t(size) * std::size_t(size) * 3);
  Resampler resampler;
  centre_crop(picture, size, resampler, {result.pixels.data()});
  result.inverted = invert == Invert::on;
  if (result.inverted) {
    result.steps.emplace_back("inverted as told");
    for (std::uint8_t& value : result.pixels) value = static_cast<std::uint8_t>(kWhite - value);
  }
  return result;
}

PreparedImage prepare_image(const Image& picture, const ImageTarget& target, Invert invert,
                            bool stretch) {
  if (target.channels != 1 && target.channels != 3) {
    throw DataError("a model for images of " + std::to_string(target.channels) +
                    " channels cannot be shown a picture, which has 1 or 3");
  }
  PreparedImage result;
  if (picture.orientation != 1) result.steps.emplace_back(kTurned);
  Image image = with_channels(picture, target, result.steps);
  const bool light = ground_of(image) > kMiddle, model_light = target.background > kMiddle;
  result.inverted = invert == Invert::on || (invert == Invert::automatic && light != model_light);
  if (result.inverted) {
    const std::string why = light ? " (it is dark on light, the training images light on dark)"
                                  : " (it is light on dark, the training images dark on light)";
    result.steps.push_back("inverted" + (invert == Invert::on ? " as told" : why));
    for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(kWhite - value);
  }
  image = fitted(image, target, result.steps);
  if (image.width != target.width || image.height != target.height) {
    result.steps.push_back("padded to " + size_of(target.width, target.height));
  }
  result.pixels = placed(image, target);
  const double ground = ground_of(image);
  const bool scaled = picture.width != image.width || picture.height != image.height;
  if (stretch && scaled && is_off(ground, target.background)) {
    stretch_levels(result.pixels, ground, model_light);
    result.steps.push_back(std::string("levels stretched (its ground is not as ") +
                           (model_light ? "light" : "dark") + " as that of the training images)");
  }
  return result;
}

}  // namespace ringlet::data
