// Tensors for tests: random numbers, and the way between a plain vector in logical N, C, H, W order
// and a tensor of any layout. Functions that take a stream or a device work on any; the others
// address the memory directly, which is for devices on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/host_copy.h"
#include "kernels/memory.h"
#include "kernels/tensor.h"

namespace ringlet::test {

/// Where element `logical` (its index in N, C, H, W order) lies in the memory of a tensor.
inline std::int64_t storage_index(const Shape& shape, Layout layout, std::int64_t logical) {
  if (layout == Layout::nchw) return logical;
  const std::int64_t features = shape.count_per_sample();
  const std::int64_t n = logical / features, f = logical % features;
  if (layout == Layout::nhwc) {
    const std::int64_t pixels = shape[2] * shape[3];
    return n * features + f % pixels * shape[1] + f / pixels;
  }
  return (n / kLanes * features + f) * kLanes + n % kLanes;
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

/// `values` (logical order) as they lie in the memory of `view`; lanes beyond N get `padding`.
template <class T>
std::vector<T> laid_out(const ConstView& view, const std::vector<T>& values, T padding) {
  require(static_cast<std::int64_t>(values.size()) == view.count(), "test::laid_out",
          "the vector has not as many elements as the tensor");
  std::vector<T> memory(static_cast<std::size_t>(view.storage()), padding);
  for (std::int64_t i = 0; i < view.count(); ++i) {
    memory[static_cast<std::size_t>(storage_index(view.shape(), view.layout(), i))] =
        values[static_cast<std::size_t>(i)];
  }
  return memory;
}

/// The elements in logical order, of a tensor like `view` that lies at `memory` on the host.
template <class T>
std::vector<T> logical(const ConstView& view, const T* memory) {
  std::vector<T> values(static_cast<std::size_t>(view.count()));
  for (std::int64_t i = 0; i < view.count(); ++i) {
    values[static_cast<std::size_t>(i)] = memory[storage_index(view.shape(), view.layout(), i)];
  }
  return values;
}

/// What lies in the lanes beyond N; empty in other layouts and for whole blocks.
template <class T>
std::vector<T> padding_of(const ConstView& view, const T* memory) {
  std::vector<T> values;
  if (view.layout() != Layout::lanes) return values;
  const std::int64_t used = view.shape()[0] % kLanes;
  if (used == 0) return values;
  const T* block = memory + view.storage() - view.shape().count_per_sample() * kLanes;
  for (std::int64_t i = 0; i < view.shape().count_per_sample() * kLanes; ++i) {
    if (i % kLanes >= used) values.push_back(block[i]);
  }
  return values;
}

/// Every stored element, in the order of the memory.
template <class T = float>
std::vector<T> read_memory(Stream& stream, const ConstView& view) {
  (void)view.as<T>();  // it should be of this type
  std::vector<T> memory(static_cast<std::size_t>(view.storage()));
  copy_to_host(stream, view, memory.data());
  return memory;
}

/// The elements of `view` in logical order.
template <class T = float>
std::vector<T> read(Stream& stream, const ConstView& view) {
  return logical(view, read_memory<T>(stream, view).data());
}
template <class T = float>
std::vector<T> read(const ConstView& view) {
  return logical(view, view.as<T>());
}

/// What lies in the lanes beyond N.
inline std::vector<float> read_padding(const ConstView& view) {
  return padding_of(view, view.f32());
}

/// Writes `values` (logical order) to `view`; lanes beyond N get `padding`.
template <class T>
void write(const View& view, const std::vector<T>& values, T padding = T{}) {
  const std::vector<T> memory = laid_out(view, values, padding);
  std::copy(memory.begin(), memory.end(), view.as<T>());
}

/// A new tensor with these values.
template <class T>
Tensor upload(Device& device, const Shape& shape, const std::vector<T>& values,
              Layout layout = Layout::nchw, T padding = T{}) {
  Tensor tensor(device, shape, DTypeOf<T>::value, layout);
  copy_from_host(device.compute(), laid_out(tensor.view(), values, padding).data(), tensor);
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

/// The bytes of a tensor as they lie in memory.
inline std::vector<unsigned char> bytes_of(Stream& stream, const ConstView& view) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(view.bytes()));
  copy_to_host(stream, view, bytes.data());
  return bytes;
}

}  // namespace ringlet::test
