#include "data/dataset.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "data/content_hash.h"
#include "data/error.h"

namespace ringlet::data {
namespace {

PixelStatistics statistics_of(const Histogram& histogram) {
  double count = 0, sum = 0, squares = 0;
  for (std::size_t value = 0; value < histogram.size(); ++value) {
    const double times = static_cast<double>(histogram[value]);
    const double level = static_cast<double>(value) / 255.0;
    count += times;
    sum += times * level;
    squares += times * level * level;
  }
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  // Images of one single colour have no deviation to divide by.
  constexpr double kFlat = 1e-12;
  return {mean, variance > kFlat ? std::sqrt(variance) : 1.0};
}

std::uint64_t hash_text(const std::string& text, std::uint64_t seed) {
  return hash_bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, seed);
}

template <class T>
std::uint64_t hash_values(std::span<const T> values, std::uint64_t seed) {
  return hash_bytes({reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()},
                    seed);
}

}  // namespace

Dataset::Dataset(DatasetInfo info, std::vector<std::uint8_t> images,
                 std::vector<std::int32_t> labels)
    : info_(std::move(info)), images_(std::move(images)), labels_(std::move(labels)) {
  check();
  const std::int64_t sizes[] = {size(), channels(), height(), width(), classes()};
  Histogram histogram{};
  hash_ = hash_and_count(images_, hash_values<std::int64_t>(sizes, 0), histogram);
  hash_ = hash_values<std::int32_t>(labels_, hash_);
  for (const std::string& name : info_.class_names) hash_ = hash_text(name, hash_);
  statistics_ = statistics_of(histogram);
}

void Dataset::check() const {
  const auto fail = [&](const std::string& what) { throw DataError(name() + ": " + what); };
  if (size() == 0) fail("there are no samples");
  if (channels() <= 0 || height() <= 0 || width() <= 0) fail("the images have no pixels");
  if (static_cast<std::int64_t>(images_.size()) != size() * pixels()) {
    fail("there are " + std::to_string(images_.size()) + " bytes of pixels for " +
         std::to_string(size()) + " images of " + std::to_string(pixels()));
  }
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int32_t label = labels_[static_cast<std::size_t>(i)];
    if (label >= 0 && label < classes()) continue;
    fail("label " + std::to_string(label) + " of sample " + std::to_string(i) +
         " is outside the classes 0 to " + std::to_string(classes() - 1));
  }
}

std::string Dataset::description() const {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_));
  return name() + ": " + std::to_string(size()) + " images of " + std::to_string(channels()) +
         " x " + std::to_string(height()) + " x " + std::to_string(width()) + ", " +
         std::to_string(classes()) + " classes, hash " + hash;
}

}  // namespace ringlet::data
