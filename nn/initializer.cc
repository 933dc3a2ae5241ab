#include "nn/initializer.h"

#include <cmath>

#include "base/philox.h"

namespace ringlet::nn {

Initializer Initializer::torch_default(std::int64_t fan_in) {
  return {Distribution::uniform, 1.0F / std::sqrt(static_cast<float>(fan_in))};
}

Initializer Initializer::kaiming_normal(std::int64_t fan_in) {
  return {Distribution::normal, std::sqrt(2.0F / static_cast<float>(fan_in))};
}

void initialize(const Initializer& initializer, std::uint64_t seed, std::string_view name,
                std::span<float> values, std::int64_t first) {
  const std::uint64_t which = hash_of(name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const PhiloxBlock words = philox(seed, static_cast<std::uint64_t>(first) + i, which);
    switch (initializer.distribution) {
      case Distribution::constant:
        values[i] = initializer.scale;
        break;
      case Distribution::uniform:
        values[i] = initializer.scale * (2 * uniform01(words[0]) - 1);
        break;
      case Distribution::normal:
        values[i] = initializer.scale * normal(words[0], words[1]);
        break;
    }
  }
}

}  // namespace ringlet::nn
