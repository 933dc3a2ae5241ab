// The cases of each operation: one struct an operation, for the comparison with the reference, the
// finite differences and the benchmarks. Shapes are for one sample; tests and benchmarks choose the
// batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/conv2d.h"
#include "kernels/pool2d.h"

namespace ringlet::test {

/// Batch sizes: whole and partly filled blocks of sixteen, shares of a batch of 256, none at all.
inline const std::vector<std::int64_t> kBatches = {0, 1, 15, 16, 17, 33, 85, 86, 96};

/// For what takes long: none, few, and a block more than a vector has.
inline const std::vector<std::int64_t> kFewBatches = {0, 1, 17, 33};

/// A gradient is overwritten, added to, or something between.
inline const std::vector<float> kBetas = {0.0F, 1.0F, 0.5F};

/// What a relative L2 error may be of a sum of `terms` products whose signs are random, where a
/// shorter one may be `tolerance`. Added one after another in f32, the error grows with the root of
/// their number: about 1.9e-8 sqrt(terms), 1.85e-6 for 9600.
inline double sum_tolerance(double tolerance, std::int64_t terms) {
  constexpr double kShort = 2400;
  return tolerance * std::max(1.0, std::sqrt(static_cast<double>(terms) / kShort));
}

struct Conv2dCase {
  const char* name;
  Conv2dSpec spec;
  Shape x;                  // [1, C, H, W]
  Shape w;                  // [O, C/groups, KH, KW]
  double tolerance = 2e-6;  // relative L2
};

inline std::vector<Conv2dCase> conv2d_cases() {
  return {
      {"plain", {}, {1, 2, 7, 9}, {5, 2, 3, 3}},
      {"one_channel", {}, {1, 1, 12, 12}, {20, 1, 3, 3}},
      {"window_5x5", {}, {1, 4, 9, 9}, {10, 4, 5, 5}},
      {"pointwise", {}, {1, 6, 4, 5}, {7, 6, 1, 1}},
      {"pointwise_groups", {.groups = 2}, {1, 6, 4, 5}, {4, 3, 1, 1}},
      {"pointwise_stride", {.stride = {2, 2}}, {1, 3, 5, 6}, {4, 3, 1, 1}},
      {"padding", {.padding = {1, 2}}, {1, 3, 5, 6}, {4, 3, 3, 4}},
      {"stride", {.stride = {2, 3}, .padding = {1, 1}}, {1, 2, 8, 10}, {3, 2, 3, 3}},
      {"dilation", {.padding = {2, 3}, .dilation = {2, 3}}, {1, 2, 7, 8}, {3, 2, 3, 3}},
      {"all",
       {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 2}, .groups = 3},
       {1, 6, 9, 11},
       {9, 2, 2, 3}},
      {"depthwise", {.padding = {1, 1}, .groups = 5}, {1, 5, 6, 6}, {5, 1, 3, 3}},
      {"window_of_the_image", {}, {1, 3, 4, 5}, {17, 3, 4, 5}},
      {"wide_padding", {.stride = {2, 2}, .padding = {4, 4}}, {1, 1, 2, 2}, {2, 1, 3, 3}},
  };
}

/// With enough channels for the ways that copy (cpu/lanes/columns.h) and transform (winograd.h).
inline std::vector<Conv2dCase> wide_conv2d_cases() {
  return {
      {"winograd", {.padding = {1, 1}}, {1, 16, 9, 6}, {18, 16, 3, 3}},
      {"winograd_without_padding", {}, {1, 20, 6, 11}, {17, 20, 3, 3}},
      {"winograd_many_tiles", {.padding = {1, 1}}, {1, 16, 23, 24}, {16, 16, 3, 3}},
      {"winograd_wide_padding", {.padding = {2, 1}}, {1, 33, 4, 8}, {16, 33, 3, 3}},
      {"columns", {.stride = {2, 2}, .padding = {1, 1}}, {1, 33, 7, 8}, {34, 33, 3, 3}},
      {"columns_of_few_channels",
       {.stride = {2, 2}, .padding = {3, 3}},
       {1, 3, 9, 10},
       {32, 3, 7, 7}},
      {"padded_5x5", {.padding = {2, 2}}, {1, 1, 28, 28}, {6, 1, 5, 5}},
      {"columns_pointwise", {.stride = {2, 2}}, {1, 32, 5, 6}, {35, 32, 1, 1}},
      {"columns_all",
       {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 2}, .groups = 2},
       {1, 66, 9, 11},
       {66, 33, 2, 3}},
  };
}

struct Pool2dCase {
  const char* name;
  Pool2dSpec spec;
  Shape x;  // [1, C, H, W]
  double tolerance = 1e-6;
};

inline std::vector<Pool2dCase> pool2d_cases() {
  return {
      {"halves", {}, {1, 3, 6, 8}},
      {"halves_odd", {}, {1, 3, 9, 9}},
      {"halves_ceil", {.ceil_mode = true}, {1, 2, 5, 7}},
      {"overlap", {.kernel = {3, 3}, .stride = {2, 2}}, {1, 2, 8, 9}},
      {"padding", {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}}, {1, 2, 6, 7}},
      {"padding_not_counted",
       {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .count_include_pad = false},
       {1, 2, 6, 7}},
      {"ceil_and_padding",
       {.kernel = {3, 4}, .stride = {2, 3}, .padding = {1, 2}, .ceil_mode = true},
       {1, 2, 6, 8}},
      {"ceil_and_padding_not_counted",
       {.kernel = {3, 4},
        .stride = {2, 3},
        .padding = {1, 2},
        .ceil_mode = true,
        .count_include_pad = false},
       {1, 2, 6, 8}},
      {"gaps", {.kernel = {1, 2}, .stride = {3, 4}}, {1, 2, 7, 9}},
      {"whole_image", {.kernel = {4, 5}, .stride = {1, 1}}, {1, 3, 4, 5}},
  };
}

struct LinearCase {
  const char* name;
  std::int64_t inputs;
  std::int64_t outputs;
  double tolerance = 2e-6;
};

inline std::vector<LinearCase> linear_cases() {
  return {{"square", 16, 16}, {"odd", 37, 11},  {"one_to_one", 1, 1},
          {"to_one", 19, 1},  {"wide", 5, 150}, {"long", 300, 10}};
}

/// [1, C] or [1, C, H, W].
inline std::vector<Shape> bias_shapes() {
  return {{1, 1}, {1, 10}, {1, 7, 1, 1}, {1, 3, 5, 7}, {1, 20, 4, 4}};
}

}  // namespace ringlet::test
