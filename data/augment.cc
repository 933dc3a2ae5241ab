#include "data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/data_error.h"
#include "data/images/resample.h"

namespace ringlet::data {

namespace {

constexpr double kLeastArea = 0.08;
constexpr double kNarrowest = 3.0 / 4, kWidest = 4.0 / 3;

/// Uniform in [low, high), with 53 bits.
double between(double low, double high, Random& random) {
  return low + (high - low) * (static_cast<double>(random.bits() >> 11) * 0x1p-53);
}

/// Uniform in 0 .. most.
int up_to(int most, Random& random) {
  return static_cast<int>((random.bits() >> 32) * (static_cast<std::uint64_t>(most) + 1) >> 32);
}

bool flip(Random& random) { return random.chance(0.5F); }

/// Half to even, as Python's round().
int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

Box middle(int width, int height, int part_width, int part_height) {
  return {(width - part_width) / 2, (height - part_height) / 2, part_width, part_height};
}

Box largest_in_the_middle(int width, int height) {
  const double shape = static_cast<double>(width) / height;
  if (shape < kNarrowest) return middle(width, height, width, rounded(width / kNarrowest));
  if (shape > kWidest) return middle(width, height, rounded(height * kWidest), height);
  return {0, 0, width, height};
}

/// One plane: what of `cut` is outside is black.
void cut_plane(const std::uint8_t* plane, int height, int width, const Cut& cut,
               std::uint8_t* out) {
  for (int y = 0; y < cut.box.height; ++y, out += cut.box.width) {
    const int row = y + cut.box.top;
    std::fill(out, out + cut.box.width, std::uint8_t{0});
    if (row < 0 || row >= height) continue;
    const int begin = std::max(-cut.box.left, 0);
    const int end = std::min(width - cut.box.left, cut.box.width);
    const std::uint8_t* from = plane + std::ptrdiff_t{row} * width + cut.box.left;
    std::copy(from + begin, from + end, out + begin);
    if (cut.mirrored) std::reverse(out, out + cut.box.width);
  }
}

}  // namespace

const std::vector<std::string>& augment_names() {
  static const std::vector<std::string> names{"none", "flip", "crop-flip", "random-resized-crop"};
  return names;
}

const char* name_of(Augment augment) {
  return augment_names()[static_cast<std::size_t>(augment)].c_str();
}

Augment parse_augment(const std::string& name) {
  const auto& names = augment_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Augment>(found - names.begin());
  throw DataError("augmentation " + name +
                  " is not known; take none, flip, crop-flip or random-resized-crop");
}

Variation variation_of(const Augmentation& augmentation, std::int64_t epoch, std::int64_t index) {
  constexpr std::uint64_t kOfAugmentation = 0x6175676D656E7473;  // apart from the sampler's keys
  const std::uint64_t of_run = mix64(augmentation.seed ^ kOfAugmentation);
  const std::uint64_t of_epoch = mix64(of_run ^ static_cast<std::uint64_t>(epoch));
  return {augmentation.kind, mix64(of_epoch ^ static_cast<std::uint64_t>(index))};
}

Cut draw_random_resized_crop(int width, int height, Random& random) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(width) * height;
  Box box;
  bool fits = false;
  for (int i = 0; i < kTries && !fits; ++i) {
    const double part = area * between(kLeastArea, 1, random);
    const double shape = std::exp(between(std::log(kNarrowest), std::log(kWidest), random));
    box.width = rounded(std::sqrt(part * shape));
    box.height = rounded(std::sqrt(part / shape));
    fits = box.width > 0 && box.width <= width && box.height > 0 && box.height <= height;
  }
  if (fits) {
    box.top = up_to(height - box.height, random);
    box.left = up_to(width - box.width, random);
  } else {
    box = largest_in_the_middle(width, height);
  }
  return {box, flip(random)};
}

Cut draw_crop_flip(int width, int height, Random& random) {
  constexpr int kPart = 8;  // of a side that is added
  const int across = (width + kPart / 2) / kPart, down = (height + kPart / 2) / kPart;
  Cut cut{{0, 0, width, height}};
  cut.box.top = up_to(2 * down, random) - down;
  cut.box.left = up_to(2 * across, random) - across;
  cut.mirrored = flip(random);
  return cut;
}

void resize_cut(const Planes& image, const Cut& cut, int height, int width,
                std::span<std::uint8_t> out) {
  if (image.channels > kRgbxBytes) {
    throw DataError("random-resized-crop is for images of at most 4 channels, and these have " +
                    std::to_string(image.channels) + "; choose another --augment");
  }
  thread_local std::vector<std::uint8_t> pixels;
  thread_local Resampler resampler;
  const Box& box = cut.box;
  const std::ptrdiff_t row_bytes = std::ptrdiff_t{box.width} * kRgbxBytes;
  pixels.resize(std::size_t(row_bytes) * std::size_t(box.height));
  std::uint8_t* to = pixels.data();
  for (std::ptrdiff_t y = 0; y < box.height; ++y) {
    std::array<const std::uint8_t*, kRgbxBytes>
        from{};  // a channel that is not there means nothing
    for (int c = 0; c < kRgbxBytes; ++c) {
      const std::ptrdiff_t plane = c < image.channels ? c : 0;
      from[std::size_t(c)] =
          image.pixels + (plane * image.height + box.top + y) * image.width + box.left;
    }
    for (std::ptrdiff_t x = 0; x < box.width; ++x, to += kRgbxBytes) {
      to[0] = from[0][x], to[1] = from[1][x], to[2] = from[2][x], to[3] = from[3][x];
    }
  }
  resampler.resize({pixels.data(), box.width, box.height, row_bytes}, width, height,
                   {0, 0, width, height}, {out.data(), image.channels, cut.mirrored});
}

void vary(std::span<const std::uint8_t> image, std::int64_t channels, std::int64_t height,
          std::int64_t width, const Variation& variation, std::span<std::uint8_t> out) {
  const int h = static_cast<int>(height), w = static_cast<int>(width);
  Random random(variation.key);
  Cut cut{{0, 0, w, h}};
  if (variation.kind == Augment::random_resized_crop) {
    cut = draw_random_resized_crop(w, h, random);
    return resize_cut({image.data(), static_cast<int>(channels), h, w}, cut, h, w, out);
  }
  if (variation.kind == Augment::flip) cut.mirrored = flip(random);
  if (variation.kind == Augment::crop_flip) cut = draw_crop_flip(w, h, random);
  const auto plane = static_cast<std::size_t>(height * width);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    cut_plane(image.data() + c * plane, h, w, cut, out.data() + c * plane);
  }
}

}  // namespace ringlet::data
