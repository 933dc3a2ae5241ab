#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <span>
#include <string>

#include "base/data_error.h"
#include "data/fashion_mnist.h"
#include "data/garments.h"
#include "data/images/canvas.h"
#include "data/memory_dataset.h"
#include "data/random.h"

namespace ringlet::data {
namespace {

enum class Split : std::uint64_t { train = 1, test = 2 };

Pose random_pose(Random& random) {
  const float scale = random.between(9.5F, 13.0F), width = random.between(0.85F, 1.1F);
  return {.scale_x = scale * width * (random.chance(0.5F) ? -1.0F : 1.0F),
          .scale_y = scale * random.between(0.9F, 1.05F),
          .centre_x = 14 + random.between(-2.0F, 2.0F),
          .centre_y = 14 + random.between(-1.5F, 1.5F),
          .slant = random.between(-0.18F, 0.18F)};
}

/// Factors along one axis: stripes, a slow change of light, or nothing.
using Factors = std::array<float, kCanvasSide>;

Factors random_factors(Random& random) {
  constexpr int kMiddle = kCanvasSide / 2;
  Factors factors;
  const float light = random.between(-0.01F, 0.01F);
  const bool striped = random.chance(0.2F);
  const float contrast = striped ? random.between(0.1F, 0.5F) : 0.0F;
  const float period = random.between(3.0F, 7.0F), phase = random.between(0.0F, 7.0F);
  for (int i = 0; i < kCanvasSide; ++i) {
    const float at = (static_cast<float>(i) + phase) / period;
    const bool dark = at - std::floor(at) < 0.5F;
    factors[static_cast<std::size_t>(i)] =
        (1 + light * static_cast<float>(i - kMiddle)) * (dark ? 1 - contrast : 1.0F);
  }
  return factors;
}

/// Brightness, texture and noise; then bytes. Noise is stronger on the cloth than beside it.
void develop(Canvas& canvas, Random& random, std::span<std::uint8_t> out) {
  const float brightness = 255 * random.between(0.35F, 0.95F);
  const float noise = random.between(0.02F, 0.14F);
  const Factors rows = random_factors(random), columns = random_factors(random);
  std::size_t i = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns.size(); column += 4) {
      std::uint64_t bits = random.bits();  // sixteen bits a pixel
      for (std::size_t k = column; k < column + 4; ++k, ++i, bits >>= 16) {
        const float grain = static_cast<float>(bits & 0xFF) + static_cast<float>(bits >> 8 & 0xFF);
        const float cloth = canvas.pixels()[i] * rows[row] * columns[k];
        const float value = brightness * cloth + (grain - 255) * noise * (0.15F + cloth);
        out[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
      }
    }
  }
}

/// Draws one sample and returns its class.
std::int32_t draw(std::uint64_t seed, Split split, std::int64_t index,
                  std::span<std::uint8_t> out) {
  Random random(mix64(seed + mix64(static_cast<std::uint64_t>(split))) +
                static_cast<std::uint64_t>(index));
  const auto label = static_cast<std::int32_t>(random.bits() % fashion_mnist_classes().size());
  Canvas canvas(random_pose(random));
  draw_garment(canvas, label, random);
  develop(canvas, random, out);
  return label;
}

std::shared_ptr<const Dataset> draw_split(const SyntheticOptions& options, Split split,
                                          std::int64_t size) {
  std::vector<std::uint8_t> images(static_cast<std::size_t>(size) * kCanvasPixels);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(size));
  const auto draw_range = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      stop_if(options.stop_requested);
      std::uint8_t* image = images.data() + i * kCanvasPixels;
      labels[static_cast<std::size_t>(i)] = draw(options.seed, split, i, {image, kCanvasPixels});
    }
  };
  auto half = std::async(std::launch::async, draw_range, size / 2, size);
  draw_range(0, size / 2);
  half.get();
  return std::make_shared<const MemoryDataset>(
      DatasetInfo{std::string(kSyntheticName) + (split == Split::train ? "/train" : "/test"), 1,
                  kCanvasSide, kCanvasSide, fashion_mnist_classes()},
      std::move(images), std::move(labels));
}

}  // namespace

Splits make_synthetic(const SyntheticOptions& options) {
  for (const std::int64_t size : {options.train, options.test}) {
    if (size <= 0) {
      throw DataError("synthetic: the number of samples must be positive, not " +
                      std::to_string(size));
    }
  }
  return {draw_split(options, Split::train, options.train),
          draw_split(options, Split::test, options.test)};
}

}  // namespace ringlet::data
