#include "data/random_images.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/data_error.h"
#include "base/hash.h"
#include "base/memory_limits.h"
#include "base/processors.h"
#include "data/in_parallel.h"
#include "data/random.h"

namespace ringlet::data {

namespace {

constexpr int kClasses = 10;

/// Of train and test.
enum class Part : std::uint64_t { train = 5, test = 6 };

/// Channels, height, width.
using ImageShape = std::array<std::int64_t, 3>;

struct RandomSamples {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

/// Fills `out` and returns the label.
std::int32_t draw_random(std::uint64_t seed, Part part, std::int64_t index,
                         std::span<std::uint8_t> out) {
  Random random(mix64(seed + mix64(static_cast<std::uint64_t>(part))) +
                static_cast<std::uint64_t>(index));
  const auto label = static_cast<std::int32_t>(random.bits() % kClasses);
  std::size_t at = 0;
  constexpr std::size_t kBytes = 8;  // of a number
  for (; at + kBytes <= out.size(); at += kBytes) {
    const std::uint64_t bits = random.bits();
    for (std::size_t k = 0; k < kBytes; ++k) out[at + k] = static_cast<std::uint8_t>(bits >> 8 * k);
  }
  std::uint64_t bits = random.bits();
  for (; at < out.size(); ++at, bits >>= 8) out[at] = static_cast<std::uint8_t>(bits);
  return label;
}

RandomSamples draw_all(const RandomImagesOptions& options, Part part, std::int64_t samples,
                       const ImageShape& shape) {
  const auto pixels = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(samples, 0));
  RandomSamples all{std::vector<std::uint8_t>(size * pixels), std::vector<std::int32_t>(size)};
  in_parallel(
      samples, usable_processors(),
      [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        all.labels[at] = draw_random(options.seed, part, i, {&all.images[at * pixels], pixels});
      },
      options.stop_requested);
  return all;
}

class RandomImages final : public Dataset {
 public:
  RandomImages(DatasetInfo info, RandomSamples samples, std::uint64_t seed, Part part)
      : Dataset(std::move(info), std::move(samples.labels)),
        images_(std::move(samples.images)),
        seed_(seed),
        part_(part) {}

  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    std::copy_n(images_.begin() + index * pixels(), out.size(), out.begin());
  }
  std::span<const std::uint8_t> images() const override { return images_; }

 protected:
  /// Without a pass over the pixels, which these numbers say.
  PixelContent survey(std::uint64_t seed) const override {
    const std::uint64_t numbers[] = {seed_, static_cast<std::uint64_t>(part_)};
    const PixelStatistics uniform{0.5, std::sqrt((256.0 * 256.0 - 1) / 12) / 255};
    return {hash_bytes(numbers, sizeof numbers, seed),
            std::vector<PixelStatistics>(static_cast<std::size_t>(channels()), uniform)};
  }

 private:
  std::vector<std::uint8_t> images_;
  std::uint64_t seed_;
  Part part_;
};

/// Takes a whole number off the beginning of `text`; 0: there is none, or one out of range.
std::int64_t take_extent(std::string_view& text) {
  constexpr std::int64_t kMost = 65536;
  std::int64_t extent = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (read.ec != std::errc() || extent < 1 || extent > kMost) return 0;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return extent;
}

/// Nothing where it is none.
std::optional<ImageShape> shape_in(std::string_view text) {
  ImageShape shape{};
  bool right = true;
  for (std::size_t i = 0; right && i < shape.size(); ++i) {
    if (i > 0) {
      right = text.starts_with('x');
      if (right) text.remove_prefix(1);
    }
    shape[i] = right ? take_extent(text) : 0;
    right = shape[i] > 0;
  }
  if (right && text.empty()) return shape;
  return {};
}

ImageShape checked_shape(const std::string& word) {
  const std::optional<ImageShape> shape = shape_in(word);
  if (shape) return *shape;
  throw DataError("--data random:" + word + ": " + fault_of_shape(word));
}

/// Throws DataError where both splits do not fit into memory.
void require_memory(const std::string& word, const ImageShape& shape,
                    const RandomImagesOptions& options) {
  constexpr double kMega = 1e6;
  const double samples = static_cast<double>(options.train) + static_cast<double>(options.test);
  const double needed = samples * static_cast<double>(shape[0] * shape[1] * shape[2]);
  const auto present = static_cast<double>(usable_memory());
  if (needed <= present) return;
  const auto mega = [](double bytes) {
    return std::to_string(static_cast<std::int64_t>(bytes / kMega));
  };
  throw DataError("--data random:" + word + ": " +
                  std::to_string(static_cast<std::int64_t>(samples)) + " such images need " +
                  mega(needed) + " MB of memory, and there are " + mega(present) +
                  " MB; take fewer by --synthetic-train and --synthetic-test, or smaller ones");
}

}  // namespace

std::string fault_of_shape(const std::string& word) {
  if (shape_in(word)) return "";
  return "the shape is channels x height x width, each a whole number from 1 to 65536, as in "
         "random:3x224x224";
}

Splits make_random_images(const std::string& word, const RandomImagesOptions& options) {
  const ImageShape shape = checked_shape(word);
  require_memory(word, shape, options);
  std::vector<std::string> classes;
  for (int i = 0; i < kClasses; ++i) classes.push_back(std::to_string(i));
  const auto make = [&](Part part, std::int64_t samples) {
    DatasetInfo info{.name = std::string(kRandomImagesName) + ":" + word +
                             (part == Part::train ? "/train" : "/test"),
                     .channels = shape[0],
                     .height = shape[1],
                     .width = shape[2],
                     .target_names = classes,
                     .stop_requested = options.stop_requested};
    return std::make_shared<const RandomImages>(
        std::move(info), draw_all(options, part, samples, shape), options.seed, part);
  };
  return {make(Part::train, options.train), make(Part::test, options.test)};
}

}  // namespace ringlet::data
