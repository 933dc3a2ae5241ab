// Tensors for tests: random numbers, and the way between a plain vector in logical N, C, H, W order
// and a tensor of any layout. Device memory is addressed directly: for devices on the host.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/memory.h"
#include "kernels/tensor.h"

namespace ringlet::test {

/// Where element `logical` (its index in N, C, H, W order) lies in the memory of a tensor.
inline std::int64_t storage_index(const Shape& shape, Layout layout, std::int64_t logical) {
  if (layout == Layout::nchw) return logical;
  const std::int64_t features = shape.count_per_sample();
  const std::int64_t n = logical / features, f = logical % features;
  if (layout == Layout::lanes) {
    return (n / kLanes * features + f) * kLanes + n % kLanes;
  }
  require(shape.rank() == 4, "storage_index", "nhwc is a layout for rank 4");
  const std::int64_t pixels = shape[2] * shape[3];
  return n * features + f % pixels * shape[1] + f / pixels;
}

/// `count` numbers uniform in [low, high), the same for the same seed.
inline std::vector<float> random_floats(std::int64_t count, std::uint32_t seed, float low = -1,
                                        float high = 1) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(generator() >> 8) * 0x1p-24F;
  }
  return values;
}

/// `count` numbers in [0, below), the same for the same seed.
inline std::vector<std::int32_t> random_labels(std::int64_t count, std::uint32_t seed, int below) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (auto& value : values) {
    value = static_cast<std::int32_t>(generator() % static_cast<std::uint32_t>(below));
  }
  return values;
}

/// Writes `values` (logical order) to `view`; lanes beyond N get `padding`.
template <class T>
void write(const View& view, const std::vector<T>& values, T padding = T{}) {
  require(static_cast<std::int64_t>(values.size()) == view.count(), "test::write",
          "the vector has not as many elements as the tensor");
  T* data = view.as<T>();
  if (view.layout() == Layout::lanes) {
    for (std::int64_t i = 0; i < view.storage(); ++i) data[i] = padding;
  }
  for (std::int64_t i = 0; i < view.count(); ++i) {
    data[storage_index(view.shape(), view.layout(), i)] = values[static_cast<std::size_t>(i)];
  }
}

/// The elements of `view` in logical order.
template <class T = float>
std::vector<T> read(const ConstView& view) {
  std::vector<T> values(static_cast<std::size_t>(view.count()));
  const T* data = view.as<T>();
  for (std::int64_t i = 0; i < view.count(); ++i) {
    values[static_cast<std::size_t>(i)] = data[storage_index(view.shape(), view.layout(), i)];
  }
  return values;
}

/// What lies in the lanes beyond N; empty in other layouts and for whole blocks.
template <class T = float>
std::vector<T> read_padding(const ConstView& view) {
  std::vector<T> values;
  if (view.layout() != Layout::lanes) return values;
  const std::int64_t used = view.shape()[0] % kLanes;
  if (used == 0) return values;
  const T* block = view.as<T>() + view.storage() - view.shape().count_per_sample() * kLanes;
  for (std::int64_t i = 0; i < view.shape().count_per_sample() * kLanes; ++i) {
    if (i % kLanes >= used) values.push_back(block[i]);
  }
  return values;
}

/// A new tensor with these values.
template <class T>
Tensor upload(Device& device, const Shape& shape, const std::vector<T>& values,
              Layout layout = Layout::nchw, T padding = T{}) {
  Tensor tensor(device, shape, DTypeOf<T>::value, layout);
  write(tensor.view(), values, padding);
  return tensor;
}

/// A new tensor of random numbers in [-1, 1).
inline Tensor random_tensor(Device& device, const Shape& shape, std::uint32_t seed,
                            Layout layout = Layout::nchw, float padding = 0) {
  return upload(device, shape, random_floats(shape.count(), seed), layout, padding);
}

/// |actual - expected| / |expected| in the Euclidean norm; the plain norm where expected is 0.
/// Infinite when the sizes differ or a number is NaN.
template <class A, class B>
double relative_l2(const std::vector<A>& actual, const std::vector<B>& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double d = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    difference += d * d;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  const double error = std::sqrt(norm > 0 ? difference / norm : difference);
  return std::isnan(error) ? INFINITY : error;
}

/// Whether two tensors' memory is the same byte for byte.
inline bool same_bytes(const ConstView& a, const ConstView& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace ringlet::test
