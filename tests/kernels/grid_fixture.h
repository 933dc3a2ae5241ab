// Where the kernels of kernels/grid/ run in tests: every thread of every grid on the host, in
// shuffled orders (host_grid.h), over the shapes of the operations' tests. Memory is aligned as
// packs need it, and also off by one element. grid_test.cc says the ways.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/support/host_grid.h"
#include "tests/support/tensors.h"

namespace ringlet::test {

struct GridWay {
  const char* name = "";
  std::uint32_t seed = 0;        // of the threads' order
  std::int64_t offset = 0;       // elements between an aligned address and the tensors'
  Layout layout = Layout::nchw;  // of images
};

class Grid : public ::testing::TestWithParam<GridWay> {
 protected:
  /// A tensor with these values, which lives as long as the test.
  template <class T>
  View put(const Shape& shape, const std::vector<T>& values) {
    const View view = lay_out(shape, DTypeOf<T>::value);
    write(view, values);
    return view;
  }
  /// A result that nobody has written.
  View blank(const Shape& shape) {
    return put(shape, std::vector<float>(static_cast<std::size_t>(shape.count()), kNaN));
  }
  template <class T>
  View filled(const Shape& shape, T value) {
    return put(shape, std::vector<T>(static_cast<std::size_t>(shape.count()), value));
  }

  static View in_nchw(const View& view) {
    return {view.data(), view.shape(), view.dtype(), Layout::nchw};
  }

  Layout layout() const { return GetParam().layout; }
  /// With other numbers of channels where these lie side by side: whole packs of them.
  std::vector<Shape> with_packs_of_channels(const Shape& shape) const {
    if (layout() == Layout::nchw) return {shape};
    return {shape, {shape[0], 4 * shape[1], shape[2], shape[3]}};
  }

  std::vector<Shape> batches_of(const Pool2dCase& c) const {
    std::vector<Shape> shapes;
    for (const std::int64_t n : {0, 1, 5}) {
      for (const Shape& shape : with_packs_of_channels(c.x.with_batch(n))) shapes.push_back(shape);
    }
    return shapes;
  }

  HostGrid grid_{GetParam().seed};

 private:
  View lay_out(const Shape& shape, DType dtype) {
    const std::int64_t offset = GetParam().offset;
    const Tensor& memory = tensors_.emplace_back(*device_, Shape{shape.count() + offset}, dtype);
    const View flat = memory.view().slice(offset, shape.count() + offset);
    const bool is_image = shape.rank() == 4 && dtype != DType::u8;  // data sets are nchw
    return {flat.data(), shape, dtype, is_image ? layout() : Layout::nchw};
  }

  std::unique_ptr<Device> device_ = open_device({}, {1, false});
  std::deque<Tensor> tensors_;
};

inline const std::vector<std::int64_t> kSomeBatches = {0, 1, 17, 96};

inline double error_of(const View& actual, const std::vector<double>& expected) {
  return relative_l2(read(actual), expected);
}

/// Numbers with which rounding, signs of zero and infinities show.
inline std::vector<float> awkward_floats(std::int64_t count, std::uint32_t seed) {
  auto values = random_floats(count, seed);
  for (std::size_t i = 0; i < values.size(); i += 5) {
    const float some[] = {-0.0F, 1e-45F, -1e-40F, std::numeric_limits<float>::infinity()};
    values[i] = some[i / 5 % 4];
  }
  return values;
}

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace ringlet::test
