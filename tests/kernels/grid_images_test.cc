// kernels/grid/: bias, pooling, layouts and batches of images, on the host (grid_fixture.h),
// compared with the references.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/grid/bias.h"
#include "kernels/grid/filter_gradient.h"
#include "kernels/grid/gather_batch.h"
#include "kernels/grid/pool2d.h"
#include "kernels/grid/prelu.h"
#include "kernels/grid/transpose.h"
#include "tests/kernels/gather_cases.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/reference/bias.h"
#include "tests/reference/conv2d.h"
#include "tests/reference/elements.h"
#include "tests/reference/pool2d.h"
#include "tests/reference/prelu.h"

namespace ringlet::test {
namespace {

TEST_P(Grid, Bias) {
  std::vector<Shape> shapes = bias_shapes();
  shapes.push_back({1, 3, 0, 4});
  for (const Shape& sample : shapes) {
    for (const std::int64_t n : kSomeBatches) {
      const Shape shape = sample.with_batch(n), channels{shape[1]};
      SCOPED_TRACE(shape.to_string());
      const auto x = random_floats(shape.count(), 1, -0.5F, 1), b = random_floats(shape[1], 2);
      const View y = blank(shape);
      grid::bias_forward(grid_, put(shape, x), put(channels, b), y);
      if (shape.count() > 0) {
        EXPECT_EQ(read(y), reference::bias_forward(shape, x, b));
      }
      const auto expected = reference::bias_backward(shape, to_double(x));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape[1], beta);
        const View db = put(channels, old);
        grid::bias_backward(grid_, put(shape, x), beta, db);
        EXPECT_LE(error_of(db, blended(beta, old, expected)), 1e-6);
      }
    }
  }
}

TEST_P(Grid, AveragePool) {
  for (const Pool2dCase& c : pool2d_cases()) {
    for (const Shape& x_shape : batches_of(c)) {
      const Shape y_shape = pool2d_output_shape(c.spec, x_shape);
      SCOPED_TRACE(std::string(c.name) + " " + x_shape.to_string());
      const auto x = random_floats(x_shape.count(), 1), dy = random_floats(y_shape.count(), 2);
      const View y = blank(y_shape);
      grid::avg_pool2d_forward(grid_, c.spec, put(x_shape, x), y);
      EXPECT_LE(error_of(y, reference::avg_pool2d_forward(c.spec, x_shape, to_double(x))),
                c.tolerance);
      if (layout() == Layout::nhwc && c.spec == Pool2dSpec{}) {
        const View rows = in_nchw(blank(y_shape));
        grid::avg_pool2d_forward(grid_, c.spec, put(x_shape, x), rows);
        EXPECT_EQ(read(rows), read(y));
      }
      const auto expected = reference::avg_pool2d_backward(c.spec, x_shape, to_double(dy));
      for (const float beta : kBetas) {
        const auto old = old_gradient(x_shape.count(), beta);
        const View dx = put(x_shape, old);
        grid::avg_pool2d_backward(grid_, c.spec, put(y_shape, dy), beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected)), c.tolerance);
      }
    }
  }
}

/// Images whose 2 x 2 windows, or channels in nhwc, are whole packs, pairs, and neither, with and
/// without odd edges.
std::vector<Shape> halved_shapes(Layout layout) {
  const std::int64_t channels = layout == Layout::nhwc ? 8 : 3;
  std::vector<Shape> shapes;
  for (const std::int64_t n : {0, 1, 3, 40}) {
    for (const auto& [h, w] : {std::pair{2, 2}, {8, 8}, {26, 26}, {6, 7}, {7, 6}, {5, 5}, {3, 2}}) {
      shapes.push_back({n, h == 5 ? 3 : channels, h, w});
    }
  }
  return shapes;
}

TEST_P(Grid, PoolingBackwardHasTheReferencesBits) {
  for (const Shape& x_shape : halved_shapes(layout())) {
    SCOPED_TRACE(x_shape.to_string());
    const Shape y_shape = pool2d_output_shape({}, x_shape);
    const auto x = random_floats(x_shape.count(), 1), dy = awkward_floats(y_shape.count(), 2);
    const View y = blank(y_shape), winner = filled<std::int32_t>(y_shape, -1);
    grid::max_pool2d_forward(grid_, {}, put(x_shape, x), y, winner);
    const View average = blank(x_shape), maximum = blank(x_shape);
    grid::avg_pool2d_backward(grid_, {}, put(y_shape, dy), 0, average);
    grid::max_pool2d_backward(grid_, {}, put(y_shape, dy), winner, 0, maximum);
    EXPECT_EQ(bits_of(read(average)), bits_of(reference::avg_pool2d_backward({}, x_shape, dy)));
    EXPECT_EQ(bits_of(read(maximum)), bits_of(reference::max_pool2d_backward({}, x_shape, x, dy)));
  }
}

TEST_P(Grid, LargeIndicesGiveTheSamePooling) {
  const Pool2dSpec spec{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
  const Shape x_shape{2, 3, 9, 7}, y_shape = pool2d_output_shape(spec, x_shape);
  const auto dy = random_floats(y_shape.count(), 2);
  const auto gradient = [&]<class I>(I) {
    const View dx = blank(x_shape);
    const grid::InPlanes<I> order{grid::PoolGeometry<I>(spec, x_shape, y_shape)};
    const grid::AverageShare<float> share{put(y_shape, dy).f32()};
    grid::launch_pool(grid_, "backward", x_shape.count(),
                      grid::PoolBackward<float, grid::InPlanes<I>, grid::AverageShare<float>>{
                          order, share, 0, dx.f32()});
    return read(dx);
  };
  EXPECT_EQ(gradient(std::int32_t{}), gradient(std::int64_t{}));
  EXPECT_FALSE(grid::has_small_indices({1 << 15, 1, 1 << 8, 1 << 7}));
  const Pool2dSpec padded{
      .kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}};  // 4 of each pixel
  const Shape pixels{600'000'000, 1, 1, 1};
  grid::with_geometry(padded, pixels, pool2d_output_shape(padded, pixels),
                      [](const auto& geometry) {
                        EXPECT_EQ(sizeof(geometry.h.output_count()), sizeof(std::int64_t));
                      });
}

TEST_P(Grid, BiasAndReluAsOneBackward) {
  std::vector<Shape> shapes = bias_shapes();
  shapes.push_back({1, 3, 0, 4});
  for (const Shape& sample : shapes) {
    for (const std::int64_t n : kSomeBatches) {
      const Shape shape = sample.with_batch(n), channels{shape[1]};
      SCOPED_TRACE(shape.to_string());
      const auto a = reference::relu_forward(awkward_floats(shape.count(), 3));
      const auto dy = random_floats(shape.count(), 1, -0.5F, 1);
      const auto dz = reference::relu_backward(a, dy);
      const auto expected = reference::bias_backward(shape, to_double(dz));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape[1], beta);
        const View gradient = put(shape, dy), db = put(channels, old);
        grid::bias_relu_backward(grid_, put(shape, a), gradient, gradient, beta, db);
        EXPECT_EQ(bits_of(read(gradient)), bits_of(dz));
        EXPECT_LE(error_of(db, blended(beta, old, expected)), 1e-6);
      }
    }
  }
}

TEST_P(Grid, BiasReluAndPoolingAsOneBackward) {
  for (const Shape& shape : halved_shapes(layout())) {
    SCOPED_TRACE(shape.to_string());
    const Shape y_shape = pool2d_output_shape({}, shape), channels{shape[1]};
    const auto a = reference::relu_forward(awkward_floats(shape.count(), 3));
    auto dy = random_floats(y_shape.count(), 1, -0.5F, 1);
    if (!dy.empty()) dy.back() = -0.0F;
    const auto dz = reference::relu_backward(a, reference::avg_pool2d_backward({}, shape, dy));
    const auto expected = reference::bias_backward(shape, to_double(dz));
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape[1], beta);
      const View activations = put(shape, a), db = put(channels, old);
      grid::bias_relu_avg_pool2d_backward(grid_, put(y_shape, dy), activations, beta, db);
      EXPECT_EQ(bits_of(read(activations)), bits_of(dz));
      EXPECT_LE(error_of(db, blended(beta, old, expected)), 1e-6);
    }
    const View activations = put(shape, a);
    grid::bias_relu_avg_pool2d_backward(grid_, put(y_shape, dy), activations, 0, {});
    EXPECT_EQ(bits_of(read(activations)), bits_of(dz));
    if (layout() != Layout::nhwc) continue;
    const View again = put(shape, a), rows = in_nchw(blank(y_shape));  // dy in the other order
    write(rows, dy);
    grid::bias_relu_avg_pool2d_backward(grid_, rows, again, 0, {});
    EXPECT_EQ(bits_of(read(again)), bits_of(dz));
  }
}

TEST_P(Grid, MaximumPool) {
  for (const Pool2dCase& c : pool2d_cases()) {
    for (const Shape& x_shape : batches_of(c)) {
      const Shape y_shape = pool2d_output_shape(c.spec, x_shape);
      SCOPED_TRACE(std::string(c.name) + " " + x_shape.to_string());
      auto x = random_floats(x_shape.count(), 1);
      for (float& value : x) value = std::round(4 * value);  // of equal pixels the first one wins
      const auto dy = random_floats(y_shape.count(), 2);
      const View y = blank(y_shape), winner = filled<std::int32_t>(y_shape, -1);
      grid::max_pool2d_forward(grid_, c.spec, put(x_shape, x), y, winner);
      EXPECT_EQ(read(y), reference::max_pool2d_forward(c.spec, x_shape, x));
      std::vector<std::int32_t> winners;
      for (const auto index : reference::winners_of(c.spec, x_shape, x)) {
        winners.push_back(static_cast<std::int32_t>(index % (x_shape[2] * x_shape[3])));
      }
      EXPECT_EQ(read<std::int32_t>(winner), winners);
      const auto expected =
          reference::max_pool2d_backward(c.spec, x_shape, to_double(x), to_double(dy));
      for (const float beta : kBetas) {
        const auto old = old_gradient(x_shape.count(), beta);
        const View dx = put(x_shape, old);
        grid::max_pool2d_backward(grid_, c.spec, put(y_shape, dy), winner, beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected)), c.tolerance);
      }
    }
  }
}

TEST_P(Grid, MaximumPoolShowsBrokenNumbers) {
  for (const Pool2dSpec& spec : {Pool2dSpec{}, Pool2dSpec{.kernel = {2, 2}, .stride = {1, 1}}}) {
    for (std::size_t broken = 0; broken < 4; ++broken) {
      std::vector<float> x = {1, 2, 3, 4};
      x[broken] = kNaN;
      const View y = blank({1, 1, 1, 1}), winner = filled<std::int32_t>({1, 1, 1, 1}, -1);
      grid::max_pool2d_forward(grid_, spec, put({1, 1, 2, 2}, x), y, winner);
      EXPECT_TRUE(std::isnan(read(y)[0]));
      EXPECT_EQ(read<std::int32_t>(winner)[0], broken);
    }
  }
}

/// Cases with each tile, and with rests of each: of outputs, elements and pixels.
std::vector<Conv2dCase> filter_cases() {
  std::vector<Conv2dCase> cases = conv2d_cases();
  for (const Conv2dCase& c : wide_conv2d_cases()) cases.push_back(c);
  cases.push_back({"large_tiles", {.padding = {1, 1}}, {1, 29, 3, 5}, {130, 29, 3, 3}});
  cases.push_back({"large_tiles_in_groups",
                   {.stride = {2, 1}, .padding = {1, 1}, .groups = 2},
                   {1, 58, 4, 3},
                   {256, 29, 3, 3}});
  return cases;
}

TEST_P(Grid, FilterGradient) {
  for (const Conv2dCase& c : filter_cases()) {
    for (const std::int64_t n : {0, 1, 17}) {
      const Shape x_shape = c.x.with_batch(n), y_shape = conv2d_output_shape(c.spec, x_shape, c.w);
      SCOPED_TRACE(std::string(c.name) + " " + x_shape.to_string());
      const auto x = random_floats(x_shape.count(), 1), dy = random_floats(y_shape.count(), 4);
      const auto expected =
          reference::conv2d_backward_filter(c.spec, x_shape, c.w, to_double(x), to_double(dy));
      const View x_there = put(x_shape, x), dy_there = put(y_shape, dy);
      // How sums end and where filters lie has nothing to do with how many images there are.
      const std::vector<float> betas = n > 1 ? std::vector{0.5F} : kBetas;
      for (const float beta : betas) {
        const auto old = old_gradient(c.w.count(), beta);
        const View dw = put(c.w, old);
        grid::conv2d_backward_filter(grid_, c.spec, x_there, dy_there, beta, dw);
        EXPECT_LE(error_of(dw, blended(beta, old, expected)),
                  sum_tolerance(c.tolerance, y_shape.count() / y_shape[1]));
      }
      if (n > 1) continue;
      // Filters as a program may have them beside images in nhwc: the same sums.
      const View own = blank(c.w), row_major = in_nchw(blank(c.w));
      grid::conv2d_backward_filter(grid_, c.spec, x_there, dy_there, 0, own);
      grid::conv2d_backward_filter(grid_, c.spec, x_there, dy_there, 0, row_major);
      EXPECT_EQ(read(own), read(row_major));
    }
  }
}

// As many pixels as are cut into several shares, few and many; whatever the order of threads.
TEST_P(Grid, FilterGradientHasTheSameBitsInEveryRun) {
  const Conv2dSpec spec{.padding = {1, 1}};
  for (const auto& [channels, n] : {std::pair{3, 9}, {3, 70}, {17, 20}}) {
    const Shape shape{n, channels, 23, 11}, filter{33, channels, 3, 3}, out{n, 33, 23, 11};
    SCOPED_TRACE(shape.to_string());
    const auto x = random_floats(shape.count(), 1), dy = random_floats(out.count(), 2);
    const View first = blank(filter), second = blank(filter);
    HostGrid another(77);
    grid::conv2d_backward_filter(grid_, spec, put(shape, x), put(out, dy), 0, first);
    grid::conv2d_backward_filter(another, spec, put(shape, x), put(out, dy), 0, second);
    EXPECT_EQ(read(first), read(second));
    EXPECT_LE(error_of(first, reference::conv2d_backward_filter(spec, shape, filter, to_double(x),
                                                                to_double(dy))),
              sum_tolerance(2e-6, out.count() / out[1]));
  }
}

TEST(FilterGradient, TakesSamplesWhoseElementsAreCountedIn32Bits) {
  const auto takes = [](const Shape& x, const Shape& dy) {
    return grid::takes_filter_gradient(View(nullptr, x), View(nullptr, dy));
  };
  EXPECT_TRUE(takes({64, 3, 8192, 8192}, {64, 8, 8192, 8192}));
  EXPECT_FALSE(takes({1, 16, 8192, 8192}, {1, 8, 8192, 8192}));
  EXPECT_FALSE(takes({1, 1, 32768, 32767}, {1, 2, 32768, 32767}));
}

TEST_P(Grid, PRelu) {
  std::vector<Shape> shapes = bias_shapes();
  for (const Shape& sample : shapes) {
    for (const std::int64_t n : kSomeBatches) {
      const Shape shape = sample.with_batch(n);
      for (const std::int64_t slopes : {shape[1], std::int64_t{1}}) {
        SCOPED_TRACE(shape.to_string() + ", slopes: " + std::to_string(slopes));
        const auto x = random_floats(shape.count(), 1), a = random_floats(slopes, 2);
        const auto dy = random_floats(shape.count(), 3, -0.5F, 1);
        const View x_there = put(shape, x), a_there = put({slopes}, a), y = blank(shape);
        grid::prelu_forward(grid_, x_there, a_there, y);
        EXPECT_EQ(read(y), reference::prelu_forward(shape, x, a));
        const auto of_data = reference::prelu_backward_data(shape, x, a, dy);
        const auto of_slope =
            reference::prelu_backward_slope(shape, to_double(x), to_double(dy), slopes);
        for (const float beta : kBetas) {
          const auto old = old_gradient(shape.count(), beta), old_da = old_gradient(slopes, beta);
          const View dx = put(shape, old), da = put({slopes}, old_da);
          grid::prelu_backward(grid_, x_there, a_there, put(shape, dy), beta, dx, beta, da);
          EXPECT_LE(error_of(dx, blended(beta, old, to_double(of_data))), 1e-6);
          EXPECT_LE(error_of(da, blended(beta, old_da, of_slope)), 1e-6);
        }
        const View in_place = put(shape, dy);
        grid::prelu_backward(grid_, x_there, a_there, in_place, 0, in_place, 0, {});
        EXPECT_EQ(read(in_place), of_data);
      }
    }
  }
}

TEST_P(Grid, ChangesChannelsToAndFro) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1}, {3, 5, 1, 7}, {2, 33, 9, 8}, {5, 64, 4, 8}, {4, 0, 2, 2}}) {
    SCOPED_TRACE(shape.to_string());
    const auto x = random_floats(shape.count(), 1);
    const View rows = put(Shape{shape.count()}, x);
    for (const bool to_nhwc : {true, false}) {
      const Layout from = to_nhwc ? Layout::nchw : Layout::nhwc;
      const Layout to = to_nhwc ? Layout::nhwc : Layout::nchw;
      const auto moved = logical(ConstView(nullptr, shape, DType::f32, from), x.data());
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View y = put(Shape{shape.count()}, old);
        const View seen(y.data(), shape, DType::f32, to);
        grid::change_channels(grid_, "test", {rows.data(), shape, DType::f32, from}, beta, seen);
        const auto before = logical(ConstView(nullptr, shape, DType::f32, to), old.data());
        EXPECT_LE(relative_l2(read(seen), blended(beta, before, to_double(moved))), 1e-7);
      }
    }
  }
}

TEST_P(Grid, GatherBatchHasTheBitsOfTheLoader) {
  for (const GatherCase& c : gather_cases()) {
    const View images = put(c.shape(), c.pixels), labels = put({kGatherSize}, c.labels);
    for (const data::BatchRequest& request : gather_requests()) {
      const GatheredBatch expected = batch_of_the_loader(c, request);
      const BatchPosition position{request.epoch, request.begin};
      const View y = blank(c.image.with_batch(request.size()));
      const View batch_labels = filled<std::int32_t>({request.size()}, -7);
      grid::gather_batch(grid_, c.spec, images, labels,
                         ConstView(&position, batch_position_shape(), DType::u8), y, batch_labels);
      EXPECT_EQ(read(y), expected.images);
      EXPECT_EQ(read<std::int32_t>(batch_labels), expected.labels);
    }
  }
}

TEST_P(Grid, GatherBatchShowsPositionsBeyondTheDataSet) {
  const GatherCase c = gather_cases().front();
  for (const std::int64_t first : {std::int64_t{-1}, kGatherSize - 1}) {
    const BatchPosition position{0, first};
    const View y = blank(c.image.with_batch(2)), labels = filled<std::int32_t>({2}, -7);
    grid::gather_batch(grid_, c.spec, put(c.shape(), c.pixels), put({kGatherSize}, c.labels),
                       ConstView(&position, batch_position_shape(), DType::u8), y, labels);
    const std::int64_t outside = first < 0 ? 0 : 1, pixels = c.image.count();
    for (std::int64_t i = 0; i < 2 * pixels; ++i) {
      ASSERT_EQ(std::isnan(read(y)[static_cast<std::size_t>(i)]), i / pixels == outside);
    }
    const auto read_labels = read<std::int32_t>(labels);
    EXPECT_EQ(read_labels[static_cast<std::size_t>(outside)], -1);
    EXPECT_GE(read_labels[static_cast<std::size_t>(1 - outside)], 0);
  }
}

}  // namespace
}  // namespace ringlet::test
