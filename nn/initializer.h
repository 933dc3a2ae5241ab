// How parameters start. Every number is a pure function of (seed, parameter's name, element). So it
// does not depend on the number of replicas, the device or the order in which layers were made.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ringlet::nn {

enum class Distribution : std::uint8_t { constant, uniform, normal };

struct Initializer {
  Distribution distribution = Distribution::constant;
  /// constant: the value; uniform: half the width, [-scale, scale); normal: standard deviation.
  float scale = 0;

  static Initializer zeros() { return {Distribution::constant, 0}; }
  static Initializer constant(float value) { return {Distribution::constant, value}; }
  static Initializer normal(float deviation) { return {Distribution::normal, deviation}; }
  /// Uniform in +-1/sqrt(fan_in): PyTorch's default for the weights and biases of convolutions and
  /// linear layers (Kaiming uniform with a = sqrt(5)).
  static Initializer torch_default(std::int64_t fan_in);
  /// Normal with variance 2/fan_in, for layers followed by a ReLU (He et al., ICCV 2015).
  static Initializer kaiming_normal(std::int64_t fan_in);
};

/// Fills `values` (host memory) for the parameter `name`, from its element `first` on.
void initialize(const Initializer& initializer, std::uint64_t seed, std::string_view name,
                std::span<float> values, std::int64_t first = 0);

/// 64-bit FNV-1a, the key that a name is known by in counter-based randomness.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace ringlet::nn
