#include "data/images/resample.h"

#include <algorithm>
#include <cmath>

#include "data/images/resample_loops.h"

namespace ringlet::data {

namespace {

constexpr double kHalf = 0.5;

const ResampleLoops& loops() {
  static const ResampleLoops chosen = best_resample_loops();
  return chosen;
}

double triangle(double x) {
  const double distance = std::abs(x);
  return distance < 1 ? 1 - distance : 0;
}

/// A row of pixels into a row of each plane.
void split_row(const std::uint8_t* pixels, int width, std::ptrdiff_t plane,
               const ResampleTarget& target, std::uint8_t* out) {
  for (int c = 0; c < target.channels; ++c, out += plane) {
    const std::uint8_t* from = pixels + c;
    if (target.mirrored) {
      for (int x = 0; x < width; ++x) out[width - 1 - x] = from[x * kRgbxBytes];
    } else {
      for (int x = 0; x < width; ++x) out[x] = from[x * kRgbxBytes];
    }
  }
}

}  // namespace

void find_weights(int in, int out, int begin, int end, ResampleWeights& result) {
  const double scale = static_cast<double>(in) / out, support = std::max(scale, 1.0);
  const double to_filter = 1.0 / support;
  const auto centre_of = [=](int x) { return (x + kHalf) * scale; };
  const auto first_of = [=](double centre) {
    return std::max(static_cast<int>(centre - support + kHalf), 0);
  };
  const auto end_of = [=](double centre) {
    return std::min(static_cast<int>(centre + support + kHalf), in);
  };
  int taps = 1;
  for (int x = begin; x < end; ++x) {
    taps = std::max(taps, end_of(centre_of(x)) - first_of(centre_of(x)));
  }
  const auto count = static_cast<std::size_t>(end - begin);
  result.taps = taps;
  result.first.resize(count);
  result.weights.assign(count * static_cast<std::size_t>(taps), 0);
  std::int32_t* weights = result.weights.data();
  for (std::size_t i = 0; i < count; ++i, weights += taps) {
    const double centre = centre_of(begin + static_cast<int>(i));
    const int first = first_of(centre), last = end_of(centre);
    // All taps are looked at, also those of weight 0 behind the last one, so they must be inside.
    result.first[i] = std::min(first, in - taps);
    std::int32_t* own = weights + (first - result.first[i]);
    const auto weight_of = [&](int tap) { return triangle((tap - centre + kHalf) * to_filter); };
    double sum = 0;
    for (int tap = first; tap < last; ++tap) sum += weight_of(tap);
    for (int tap = first; tap < last; ++tap) {
      *own++ = static_cast<std::int32_t>(kHalf + weight_of(tap) / sum * (1 << kResampleBits));
    }
  }
}

void Resampler::resize(const RgbxView& image, int width, int height, const Box& window,
                       const ResampleTarget& target) {
  find_weights(image.width, width, window.left, window.left + window.width, across_);
  find_weights(image.height, height, window.top, window.top + window.height, down_);
  const int first_row = down_.first.front(), end_row = down_.first.back() + down_.taps;
  const auto row_bytes = std::size_t(window.width) * kRgbxBytes;
  rows_.resize(std::size_t(end_row - first_row) * row_bytes);
  line_.resize(row_bytes);
  loops().across({image.pixels + first_row * image.row_bytes, image.row_bytes, end_row - first_row},
                 {across_.first.data(), across_.weights.data(), across_.taps}, window.width,
                 rows_.data());
  const std::ptrdiff_t plane = std::ptrdiff_t{window.width} * window.height;
  for (int y = 0; y < window.height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    loops().down(rows_.data() + std::size_t(down_.first[at] - first_row) * row_bytes, row_bytes,
                 down_.weights.data() + std::ptrdiff_t{y} * down_.taps, down_.taps, line_.data());
    split_row(line_.data(), window.width, plane, target,
              target.planes + std::ptrdiff_t{y} * window.width);
  }
}

void write_planes(const RgbxView& image, const ResampleTarget& target) {
  const std::ptrdiff_t plane = std::ptrdiff_t{image.width} * image.height;
  for (int y = 0; y < image.height; ++y) {
    split_row(image.pixels + y * image.row_bytes, image.width, plane, target,
              target.planes + std::ptrdiff_t{y} * image.width);
  }
}

}  // namespace ringlet::data
