// What a graph of cuDNN computes, as plain loops: for the stand-in's cudnn.cc.
#pragma once

#include <cudnn_graph.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/reduction.h"
#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/floats.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace ringlet::stand_in {

/// A dense tensor in memory, of any order; a null address is a value inside the graph.
struct Tensor {
  std::vector<std::int64_t> extents, strides;
  float* data = nullptr;  ///< of another type where `dtype` is narrow
  DType dtype = DType::f32;

  std::int64_t count() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  bool is_plain() const { return dtype == DType::f32 && strides == row_major_strides(); }
  std::vector<std::int64_t> row_major_strides() const {
    return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
  }
  /// body(index in row-major order, index in memory) for each element.
  template <class Body>
  void for_each_element(Body body) const {
    std::int64_t index = 0;
    for (std::int64_t n = 0; n < extents[0]; ++n)
      for (std::int64_t c = 0; c < extents[1]; ++c)
        for (std::int64_t h = 0; h < extents[2]; ++h)
          for (std::int64_t i = 0; i < extents[3]; ++i, ++index)
            body(static_cast<std::size_t>(index),
                 n * strides[0] + c * strides[1] + h * strides[2] + i * strides[3]);
  }
  /// The same elements in `memory`, row-major and f32.
  Tensor copied_to(std::vector<float>& memory) const {
    memory.resize(static_cast<std::size_t>(count()));
    with_floats(dtype, data, [&](const auto* elements) {
      for_each_element([&](std::size_t index, std::int64_t at) {
        memory[index] = reduction::load(elements[at]);
      });
    });
    return {extents, row_major_strides(), memory.data()};
  }
  /// Takes back what copied_to() gave, rounded.
  void take_from(const std::vector<float>& memory) const {
    with_floats(dtype, data, [&]<class T>(T* elements) {
      for_each_element([&](std::size_t index, std::int64_t at) {
        elements[at] = reduction::round_to<T>(memory[index]);
      });
    });
  }
};

/// What a graph computes: y = relu(x * w + bias), or one of the gradients.
struct Convolution {
  cudnnBackendDescriptorType_t pass{};
  Tensor x, w, y, bias;
  std::vector<std::int64_t> stride, padding, dilation;
  float beta = 0;
  bool relu = false;
  bool backwards = false;  ///< the order of additions
  bool tensor_cores = false;
  DType rounded_as = DType::f32;  ///< a gradient of data that is added to

  std::int64_t taps() const { return w.extents[1] * w.extents[2] * w.extents[3]; }
  std::int64_t plane() const { return y.extents[2] * y.extents[3]; }  ///< outputs of a channel
  std::int64_t per_group() const { return w.extents[0] * w.extents[1] / x.extents[1]; }

  /// body(tap, p, address) for each tap of the filter that sees x for output p; `channels` are the
  /// channels of sample n that a group sees.
  template <class Body>
  void for_each_tap(float* channels, Body body) const {
    for (std::int64_t tap = 0; tap < taps(); ++tap) {
      const std::int64_t kw = tap % w.extents[3], kh = tap / w.extents[3] % w.extents[2];
      float* channel = channels + tap / (w.extents[3] * w.extents[2]) * x.strides[1];
      for (std::int64_t p = 0; p < plane(); ++p) {
        const std::int64_t ih = p / y.extents[3] * stride[0] - padding[0] + kh * dilation[0];
        const std::int64_t iw = p % y.extents[3] * stride[1] - padding[1] + kw * dilation[1];
        if (ih < 0 || iw < 0 || ih >= x.extents[2] || iw >= x.extents[3]) continue;
        body(tap, p, channel[ih * x.strides[2] + iw]);
      }
    }
  }

  /// body(channels, columns, first) for each sample and group: its channels of x, room for
  /// [taps, plane] values, filled with 0, and the index [n, o] of its first output.
  template <class Body>
  void for_each_group(const Tensor& xs, Body body) const {
    std::vector<float> columns(static_cast<std::size_t>(taps() * plane()));
    const std::int64_t groups = x.extents[1] / w.extents[1];
    for (std::int64_t n = 0; n < x.extents[0]; ++n) {
      for (std::int64_t group = 0; group < groups; ++group) {
        std::fill(columns.begin(), columns.end(), 0.0F);
        body(xs.data + n * x.strides[0] + group * w.extents[1] * x.strides[1], columns.data(), n,
             group * per_group());
      }
    }
  }

  /// columns[tap, p] = what of x meets the tap for output p
  void gather(float* channels, float* columns) const {
    for_each_tap(channels, [&](std::int64_t tap, std::int64_t p, float& value) {
      columns[tap * plane() + p] = value;
    });
  }

  /// out[p] += the sum of the `count` terms that add(term, part) adds to part[p], in parts.
  template <class Add>
  void add_in_parts(std::int64_t count, float* out, const Add& add) const {
    std::vector<float> part(static_cast<std::size_t>(plane()));
    for (std::int64_t begin = 0; begin < count; begin += kPart) {
      std::fill(part.begin(), part.end(), 0.0F);
      const std::int64_t end = std::min(begin + kPart, count);
      for (std::int64_t i = begin; i < end; ++i) add(backwards ? count - 1 - i : i, part.data());
      for (std::size_t p = 0; p < part.size(); ++p) out[p] += part[p];
    }
  }

  /// out[p] += in[p] * weight
  void add_product(const float* in, float weight, float* out) const {
    const std::int64_t count = plane();
    for (std::int64_t p = 0; p < count; ++p) out[p] += in[p] * weight;
  }

  void forward() const {
    std::fill_n(y.data, y.count(), 0.0F);
    for_each_group(x, [this](float* channels, float* columns, std::int64_t n, std::int64_t first) {
      gather(channels, columns);
      for (std::int64_t o = first; o < first + per_group(); ++o) {
        add_in_parts(taps(), y.data + n * y.strides[0] + o * y.strides[1],
                     [&](std::int64_t tap, float* part) {
                       add_product(columns + tap * plane(), w.data[o * taps() + tap], part);
                     });
      }
    });
    const bool adds = bias.data != nullptr && !has_fault("fused");
    for (std::int64_t i = 0; i < y.count(); ++i) {
      if (adds) y.data[i] += bias.data[i / plane() % y.extents[1]];
      if (relu) y.data[i] = stand_in::relu(y.data[i]);
    }
  }

  void add_data_gradient(const Tensor& sum) const {
    for_each_group(sum, [this](float* channels, float* columns, std::int64_t n,
                               std::int64_t first) {
      for (std::int64_t tap = 0; tap < taps(); ++tap) {
        add_in_parts(per_group(), columns + tap * plane(), [&](std::int64_t i, float* part) {
          const std::int64_t o = first + i;
          add_product(y.data + n * y.strides[0] + o * y.strides[1], w.data[o * taps() + tap], part);
        });
      }
      for_each_tap(channels, [&](std::int64_t tap, std::int64_t p, float& value) {
        value += columns[tap * plane() + p];
      });
    });
  }

  void add_filter_gradient(const Tensor& sum) const {
    for_each_group(x, [&](float* channels, float* columns, std::int64_t n, std::int64_t first) {
      gather(channels, columns);
      for (std::int64_t weight = first * taps(); weight < (first + per_group()) * taps();
           ++weight) {
        const float* dy = y.data + n * y.strides[0] + weight / taps() * y.strides[1];
        const float* in = columns + weight % taps() * plane();
        sum.data[weight] += sum_in_parts(plane(), [&](std::int64_t p) { return dy[p] * in[p]; });
      }
    });
  }

  /// gradient = sum + beta * gradient. cuDNN 9.19 rounds a narrow sum before it adds it, with each
  /// of its engines (bench/results/2026-11-27-h200.json).
  void backward(const Tensor& gradient, void (Convolution::*add)(const Tensor&) const) const {
    std::vector<float> sums(static_cast<std::size_t>(gradient.count()), 0.0F);
    (this->*add)({gradient.extents, gradient.strides, sums.data()});
    if (beta != 0) {
      reduction::visit_activations(rounded_as, [&]<class T>(T) {
        for (float& sum : sums) {
          sum = reduction::load(reduction::round_to<T>(sum));
        }
      });
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      float& value = gradient.data[i];
      value = sums[i] + (beta == 0 ? 0 : beta * value);
    }
  }

  void run() const {
    const bool rounds = tensor_cores && x.dtype == DType::f32;
    if (!rounds && x.is_plain() && w.is_plain() && y.is_plain()) return run_plain();
    std::vector<float> of_x, of_w, of_y;
    Convolution copy = *this;
    copy.x = x.copied_to(of_x);
    copy.w = w.copied_to(of_w);
    copy.y = y.copied_to(of_y);
    const bool is_data = pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    const bool is_filter = pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    for (std::vector<float>* factor : {is_data ? &of_y : &of_x, is_filter ? &of_y : &of_w}) {
      if (rounds) std::ranges::transform(*factor, factor->begin(), to_tf32);
    }
    if (is_data) copy.rounded_as = x.dtype;
    copy.run_plain();
    switch (pass) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return x.take_from(of_x);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return w.take_from(of_w);
      default:
        return y.take_from(of_y);
    }
  }

  void run_plain() const {
    switch (pass) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return backward(x, &Convolution::add_data_gradient);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return backward(w, &Convolution::add_filter_gradient);
      default:
        return forward();
    }
  }
};

}  // namespace ringlet::stand_in
