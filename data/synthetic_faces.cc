#include "data/synthetic_faces.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "base/data_error.h"
#include "base/hash.h"
#include "base/memory_limits.h"
#include "data/random.h"
#include "data/record_list.h"

namespace ringlet::data {

namespace {

constexpr int kSquares = 8;
constexpr std::int64_t kLooked = 256;  // samples whose statistics are taken

/// Of train and test.
enum class Half : std::uint64_t { train = 3, test = 4 };

std::uint64_t key_of(std::uint64_t seed, Half half, std::int64_t index) {
  return mix64(mix64(seed) ^ mix64(static_cast<std::uint64_t>(half))) ^
         static_cast<std::uint64_t>(index);
}

std::vector<std::int32_t> drawn_labels(const SyntheticFacesOptions& options, Half half,
                                       std::int64_t samples, std::int64_t identities) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::uint64_t bits = mix64(key_of(options.seed, half, i));
    labels[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(identities));
  }
  return labels;
}

class SyntheticFaces final : public Dataset {
 public:
  SyntheticFaces(const SyntheticFacesOptions& options, Half half, std::int64_t samples,
                 std::int64_t identities)
      : Dataset({.name = std::string(kSyntheticFacesName) + ":" + std::to_string(identities) +
                         (half == Half::train ? "/train" : "/test"),
                 .channels = 3,
                 .height = options.image_size,
                 .width = options.image_size,
                 .target_names = identity_names(identities),
                 .stop_requested = options.stop_requested},
                drawn_labels(options, half, samples, identities)),
        seed_(options.seed),
        half_(half) {}

  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    const auto label = static_cast<std::uint64_t>(targets()[static_cast<std::size_t>(index)]);
    Random noise(key_of(~seed_, half_, index));
    const auto light = static_cast<unsigned>(48 + (noise.bits() & 15));
    const std::int64_t side = height();
    std::size_t at = 0;
    for (std::uint64_t channel = 0; channel < 3; ++channel) {
      for (std::int64_t y = 0; y < side; ++y) {
        const std::uint64_t row =
            channel * kSquares + static_cast<std::uint64_t>(y * kSquares / side);
        const std::uint64_t colours = mix64(mix64(seed_ ^ label << 8) ^ row);
        std::uint64_t grains = 0;
        for (std::int64_t x = 0; x < side; ++x, ++at) {
          if (x % kSquares == 0) grains = noise.bits();
          const auto square = static_cast<unsigned>(x * kSquares / side);
          const auto colour = static_cast<unsigned>(colours >> (8 * square) & 0xFF);
          const auto grain = static_cast<unsigned>(grains >> (8 * (x % kSquares)) & 63);
          out[at] = static_cast<std::uint8_t>(colour * light / 86 + grain);
        }
      }
    }
  }

 protected:
  PixelContent survey(std::uint64_t seed) const override {
    const std::uint64_t numbers[] = {seed_, static_cast<std::uint64_t>(half_)};
    return {hash_bytes(numbers, sizeof numbers, seed), {}};
  }
  std::vector<PixelStatistics> measure() const override {
    return measure_every((size() + kLooked - 1) / kLooked);
  }

 private:
  std::uint64_t seed_;
  Half half_;
};

/// 0: none, or more than labels can number.
std::int64_t identities_in(std::string_view text) {
  std::int64_t identities = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), identities);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  const bool holds =
      whole && identities >= 1 && identities <= std::numeric_limits<std::int32_t>::max();
  return holds ? identities : 0;
}

std::int64_t checked_identities(const std::string& text) {
  constexpr std::int64_t kBytesOfName = 48;
  const std::int64_t identities = identities_in(text);
  if (identities == 0) {
    throw DataError("--data synthetic-faces:" + text + ": " + fault_of_identities(text));
  }
  const std::uint64_t needed = static_cast<std::uint64_t>(identities) * 2 * kBytesOfName;
  const std::uint64_t present = usable_memory();
  if (needed > present) {
    constexpr std::uint64_t kMega = 1'000'000;
    throw DataError("--data synthetic-faces:" + text + ": the names of so many identities need " +
                    std::to_string(needed / kMega) + " MB of memory, and there are " +
                    std::to_string(present / kMega) + " MB; take fewer");
  }
  return identities;
}

}  // namespace

std::string fault_of_identities(const std::string& text) {
  if (identities_in(text) > 0) return "";
  return "the number of identities is a whole number from 1 to 2147483647, as in "
         "synthetic-faces:1000";
}

std::int64_t synthetic_identities(const std::string& data) {
  const std::string begin = std::string(kSyntheticFacesName) + ":";
  return data.starts_with(begin) ? identities_in(std::string_view(data).substr(begin.size())) : 0;
}

Splits make_synthetic_faces(const std::string& text, const SyntheticFacesOptions& options) {
  const std::int64_t identities = checked_identities(text);
  return {std::make_shared<const SyntheticFaces>(options, Half::train, options.train, identities),
          std::make_shared<const SyntheticFaces>(options, Half::test, options.test, identities)};
}

}  // namespace ringlet::data
