#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/data_error.h"
#include "base/hash.h"
#include "data/content_hash.h"
#include "data/unseen_targets.h"

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

std::vector<PixelStatistics> statistics_of(const PixelCounter& counter, std::int64_t channels) {
  std::vector<PixelStatistics> statistics;
  for (std::int64_t c = 0; c < channels; ++c) {
    statistics.push_back(statistics_of(counter.histogram(c)));
  }
  return statistics;
}

std::uint64_t hash_text(const std::string& text, std::uint64_t seed) {
  return hash_bytes(text.data(), text.size(), seed);
}

template <class T>
std::uint64_t hash_values(std::span<const T> values, std::uint64_t seed) {
  return hash_bytes({reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()},
                    seed);
}

}  // namespace

Dataset::Dataset(DatasetInfo info, std::vector<std::int32_t> targets, std::vector<Field> fields)
    : info_(std::move(info)),
      targets_(std::move(targets)),
      fields_(std::move(fields)),
      size_(std::ssize(targets_)) {
  const auto fail = [&](const std::string& what) { throw DataError(name() + ": " + what); };
  const bool pictures = fields_.empty() || channels() != 0;
  if (!pictures && fields_.front().numbers() > 0) {
    size_ = std::ssize(fields_.front().values) / fields_.front().numbers();
  }
  if (size() == 0) fail("there are no samples");
  check_fields();
  if (!pictures) return;
  if (channels() <= 0 || height() <= 0 || width() <= 0) fail("the images have no pixels");
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;
  if (height() > kMostPixels / width() || channels() > kMostPixels / (height() * width())) {
    fail("an image has more pixels than any memory");
  }
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int32_t target = targets_[static_cast<std::size_t>(i)];
    if (target >= 0 && target < target_values()) continue;
    fail("label " + std::to_string(target) + " of sample " + std::to_string(i) +
         " is outside the classes 0 to " + std::to_string(target_values() - 1));
  }
}

const char* FieldSpec::problem() const {
  const bool some = !extents.empty() && extents.size() <= 3;
  const auto is_positive = [](std::int64_t extent) { return extent > 0; };
  if (!some || !std::all_of(extents.begin(), extents.end(), is_positive)) {
    return "should have one to three extents, each above 0";
  }
  constexpr std::array<std::string_view, 5> kOwn{"", "images", "targets", "constants", "handed on"};
  return std::ranges::find(kOwn, name) == kOwn.end()
             ? nullptr
             : "needs another name: images, targets, constants and 'handed on' are a batch's own";
}

void Dataset::check_fields() const {
  for (const Field& field : fields_) {
    const auto fail = [&](const std::string& what) {
      throw DataError(name() + ": the field '" + field.name + "' " + what);
    };
    if (const char* problem = field.problem()) fail(problem);
    if (std::ssize(field.values) != size() * field.numbers()) {
      fail("has " + std::to_string(field.values.size()) + " numbers for " + std::to_string(size()) +
           " samples of " + std::to_string(field.numbers()));
    }
    const auto alike = [&](const Field& other) { return other.name == field.name; };
    if (std::count_if(fields_.begin(), fields_.end(), alike) > 1) fail("is there twice");
  }
  if (fields_.size() > kMostFields) {
    throw DataError(name() + ": there are more than " + std::to_string(kMostFields) + " fields");
  }
}

void Dataset::require_sample(std::int64_t index) const {
  if (index >= 0 && index < size()) return;
  throw DataError(name() + ": there is no sample " + std::to_string(index) + " among " +
                  std::to_string(size()));
}

std::vector<std::uint8_t> Dataset::image(std::int64_t index) const {
  require_sample(index);
  std::vector<std::uint8_t> image(static_cast<std::size_t>(pixels()));
  read(index, image);
  return image;
}

PixelContent Dataset::survey(std::uint64_t seed) const {
  PixelCounter counter(seed, channels(), height() * width());
  if (!images().empty()) {
    counter.add(images());
  } else {
    std::vector<std::uint8_t> sample(static_cast<std::size_t>(pixels()));
    for (std::int64_t i = 0; i < size(); ++i) {
      stop_if(stop_requested());
      read(i, sample);
      counter.add(sample);
    }
  }
  const std::uint64_t hash = counter.finish();
  return {hash, statistics_of(counter, channels())};
}

std::vector<PixelStatistics> Dataset::measure_every(std::int64_t step) const {
  PixelCounter counter(0, channels(), height() * width());
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(pixels()));
  for (std::int64_t i = 0; i < size(); i += step) {
    stop_if(stop_requested());
    read(i, sample);
    counter.add(sample);
  }
  counter.finish();
  return statistics_of(counter, channels());
}

const std::vector<PixelStatistics>& Dataset::statistics() const {
  if (!content().statistics.empty()) return content_.statistics;
  std::call_once(measured_, [this] { statistics_ = measure(); });
  return statistics_;
}

void Dataset::read_varied(std::int64_t index, const Variation& variation,
                          std::span<std::uint8_t> out) const {
  if (variation.kind == Augment::none) return read(index, out);
  thread_local std::vector<std::uint8_t> image;
  image.resize(static_cast<std::size_t>(pixels()));
  read(index, image);
  vary(image, channels(), height(), width(), variation, out);
}

void Dataset::keep(std::int64_t index, std::vector<std::uint8_t>& kept) const {
  kept.resize(static_cast<std::size_t>(pixels()));
  read(index, kept);
}

void Dataset::vary_kept(std::span<const std::uint8_t> kept, const Variation& variation,
                        std::span<std::uint8_t> out) const {
  if (variation.kind == Augment::none) {
    std::ranges::copy(kept, out.begin());
  } else {
    vary(kept, channels(), height(), width(), variation, out);
  }
}

std::uint64_t Dataset::seed() const {
  const std::int64_t sizes[] = {size(), channels(), height(), width(), target_values()};
  return hash_values<std::int64_t>(sizes, 0);
}

const PixelContent& Dataset::surveyed() const {
  std::call_once(survey_done_, [this] { survey_ = survey(seed()); });
  return survey_;
}

std::uint64_t Dataset::with_targets(std::uint64_t hash) const {
  hash = hash_values<std::int32_t>(targets_, hash);
  for (const std::string& name : info_.target_names) hash = hash_text(name, hash);
  for (const Field& field : fields_) {
    hash = hash_values<std::int64_t>(field.extents, hash_text(field.name, hash));
    hash = hash_values<float>(field.values, hash);
  }
  return hash;
}

const PixelContent& Dataset::content() const {
  std::call_once(content_done_, [this] {
    content_ = surveyed();
    content_.hash = with_targets(content_.hash);
  });
  return content_;
}

std::uint64_t Dataset::former_hash() const {
  const std::optional<std::uint64_t> former = former_survey(seed());
  return former ? with_targets(*former) : hash();
}

PerChannel Dataset::each(double PixelStatistics::*number) const {
  std::vector<float> values;
  for (const PixelStatistics& channel : statistics()) {
    values.push_back(static_cast<float>(channel.*number));
  }
  return PerChannel(std::move(values));
}

std::string Dataset::contents() const {
  char hash_digits[17];
  std::snprintf(hash_digits, sizeof hash_digits, "%016llx",
                static_cast<unsigned long long>(hash()));
  std::string fields;
  for (const Field& field : fields_) {
    fields += (fields.empty() ? "" : ", ") + field.name + " [";
    for (std::size_t i = 0; i < field.extents.size(); ++i) {
      fields += (i == 0 ? "" : ", ") + std::to_string(field.extents[i]);
    }
    fields += "]";
  }
  if (pixels() == 0) {
    return std::to_string(size()) + " samples of " + fields + ", hash " + hash_digits;
  }
  const std::string empty = unseen_targets(targets_, target_names());
  return std::to_string(size()) + " images of " + std::to_string(channels()) + " x " +
         std::to_string(height()) + " x " + std::to_string(width()) + ", " +
         std::to_string(target_values()) + " classes" +
         (empty.empty() ? "" : " (no sample of " + empty + ")") +
         (fields.empty() ? "" : ", with " + fields) + ", hash " + hash_digits;
}

}  // namespace ringlet::data
