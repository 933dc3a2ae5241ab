// Gradients of filters from narrow factors by tensor cores (kernels/grid/narrow_filter_gradient.h):
// on the host, thread by thread, and on a GPU, compared with the reference in double.
#include "kernels/grid/narrow_filter_gradient.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "kernels/conv2d.h"
#include "kernels/cuda_devices.h"
#include "kernels/elementwise.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/reference/conv2d.h"

namespace ringlet::test {
namespace {

struct NarrowFilterCase {
  const char* name;
  Conv2dSpec spec;
  Shape x, w;
};

/// Tiles that are filled, and rests of outputs, elements and pixels; one share and several.
std::vector<NarrowFilterCase> narrow_filter_cases() {
  return {
      {"less_than_a_tile", {.padding = {1, 1}}, {2, 8, 5, 7}, {8, 8, 3, 3}},
      {"one_whole_tile", {.padding = {1, 1}}, {1, 64, 4, 8}, {64, 64, 3, 3}},
      {"rests", {.stride = {2, 1}, .padding = {2, 0}}, {3, 24, 9, 7}, {40, 24, 5, 2}},
      {"many_outputs", {.stride = {2, 2}, .padding = {1, 1}}, {3, 16, 13, 9}, {136, 16, 3, 3}},
      {"pointwise", {.stride = {2, 2}}, {5, 72, 6, 6}, {128, 72, 1, 1}},
      {"dilation", {.padding = {2, 4}, .dilation = {2, 3}}, {2, 8, 9, 11}, {16, 8, 3, 3}},
      {"one_channel", {.padding = {1, 1}}, {3, 1, 9, 10}, {32, 1, 5, 5}},
      {"some_channels_more", {.stride = {1, 2}, .padding = {1, 1}}, {2, 13, 7, 8}, {72, 13, 3, 3}},
      {"shares", {.padding = {1, 1}}, {9, 8, 23, 11}, {16, 8, 3, 3}},
      {"shares_of_many_outputs", {.padding = {1, 1}}, {8, 8, 23, 17}, {72, 8, 3, 3}},
  };
}

struct NarrowFilterGradient : ::testing::TestWithParam<DType> {
  void open(const DeviceId& id, const DeviceOptions& options) { device = open_device(id, options); }
  /// Values that the type holds exactly.
  std::vector<float> exact_floats(std::int64_t count, std::uint32_t seed) const {
    std::vector<float> values = random_floats(count, seed);
    for (float& value : values) {
      value = GetParam() == DType::bf16 ? widen(to_bfloat16(value)) : widen(to_half(value));
    }
    return values;
  }
  View put_narrow(const Shape& shape, const std::vector<float>& values) {
    const View wide = put(shape, values, Layout::nhwc);
    const View view = tensors.emplace_back(*device, shape, GetParam(), Layout::nhwc);
    cast(device->compute(), wide, view);
    return view;
  }
  View put(const Shape& shape, const std::vector<float>& values, Layout layout) {
    return tensors.emplace_back(upload(*device, shape, values, layout));
  }
  std::unique_ptr<Device> device;  // outlives the tensors
  std::deque<Tensor> tensors;
};

/// gradient(spec, x, dy, beta, dw) for each case, against the reference.
template <class Gradient>
void compare(NarrowFilterGradient& test, const Gradient& gradient) {
  for (const NarrowFilterCase& c : narrow_filter_cases()) {
    SCOPED_TRACE(c.name);
    const Shape out = conv2d_output_shape(c.spec, c.x, c.w);
    const auto x = test.exact_floats(c.x.count(), 1), dy = test.exact_floats(out.count(), 2);
    const auto expected =
        reference::conv2d_backward_filter(c.spec, c.x, c.w, to_double(x), to_double(dy));
    const View x_there = test.put_narrow(c.x, x);
    const View dy_there = test.put_narrow(out, dy);
    std::vector<float> first;
    for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
      for (const float beta : {0.0F, 1.0F, -0.5F}) {
        const auto old = random_floats(c.w.count(), 3);
        const View dw = test.put(c.w, old, layout);
        gradient(c.spec, x_there, dy_there, beta, dw);
        const std::vector<float> found = read(test.device->compute(), dw);
        EXPECT_LE(relative_l2(found, blended(beta, old, expected)), 1e-6) << "beta " << beta;
        if (beta != 0) continue;
        if (first.empty()) first = found;
        EXPECT_EQ(found, first) << "the same bits in every layout and run";
      }
    }
  }
}

TEST_P(NarrowFilterGradient, OnTheHost) {
  open({}, {1, false});
  for (const std::uint32_t seed : {5U, 6U}) {
    HostGrid grid(seed);
    compare(*this,
            [&](const Conv2dSpec& spec, const View& x, const View& dy, float beta, const View& dw) {
              ASSERT_TRUE(grid::takes_narrow_filter_gradient(spec, x, dy));
              grid::narrow_filter_gradient(grid, spec, x, dy, beta, dw);
            });
  }
}

TEST_P(NarrowFilterGradient, OnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  open({DeviceKind::cuda, 0}, {.deterministic = true});
  compare(*this,
          [&](const Conv2dSpec& spec, const View& x, const View& dy, float beta, const View& dw) {
            conv2d_backward_filter(device->compute(), spec, x, dy, beta, dw);
          });
}

TEST_P(NarrowFilterGradient, AreTakenOfWholeChunksOfChannels) {
  open({}, {1, false});
  const DType dtype = GetParam();
  const auto takes = [&](const Conv2dSpec& spec, const Shape& x, const Shape& dy, DType of_x,
                         Layout layout, std::int64_t offset) {
    const Tensor all(*device, {x.count() + 8}, of_x), sums(*device, dy, dtype, Layout::nhwc);
    const View flat = all.view().slice(offset, x.count() + offset);
    return grid::takes_narrow_filter_gradient(spec, View(flat.data(), x, of_x, layout), sums);
  };
  const Shape x{2, 8, 4, 4}, dy{2, 16, 4, 4};
  EXPECT_TRUE(takes({}, x, dy, dtype, Layout::nhwc, 0));
  EXPECT_FALSE(takes({}, x, dy, DType::f32, Layout::nhwc, 0));
  EXPECT_FALSE(takes({}, x, dy, dtype, Layout::nchw, 0));
  EXPECT_FALSE(takes({}, x, dy, dtype, Layout::nhwc, 1)) << "sixteen bytes are read at once";
  EXPECT_TRUE(takes({}, {2, 13, 4, 4}, {2, 32, 4, 4}, dtype, Layout::nhwc, 0)) << "by a copy";
  EXPECT_FALSE(takes({}, {2, 13, 4, 4}, dy, dtype, Layout::nhwc, 0)) << "a copy for few outputs";
  EXPECT_FALSE(takes({}, x, {2, 12, 4, 4}, dtype, Layout::nhwc, 0));
  EXPECT_FALSE(takes({.groups = 2}, x, dy, dtype, Layout::nhwc, 0));
}

// The form of the sum decides the bits: it may not change without a word in CHANGELOG.md.
TEST(NarrowFilterGradientPlan, CutsThePixelsSoThatAnH100IsBusy) {
  const auto plan = grid::TensorPlan::of(grid::FewOutputsTile{}, 64, 576, 128 * 56 * 56);
  EXPECT_EQ(plan.output_tiles, 1);
  EXPECT_EQ(plan.element_tiles, 3);
  EXPECT_EQ(plan.shares, 88);  // 264 blocks
  const auto deep = grid::TensorPlan::of(grid::ManyOutputsTile{}, 512, 4608, 128 * 7 * 7);
  EXPECT_EQ(deep.output_tiles * deep.element_tiles, 144);
  EXPECT_EQ(deep.shares, 3);
  const auto small = grid::TensorPlan::of(grid::ManyOutputsTile{}, 128, 128, 10);
  EXPECT_EQ(small.shares, 1);
  EXPECT_EQ(small.turns_a_share, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NarrowFilterGradient, ::testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace ringlet::test
