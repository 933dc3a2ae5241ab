// Convolution in nchw: im2col and matrix products, for runs of images whose length depends on the
// shapes alone, so that the results' bits do not depend on the number of threads.
#include "kernels/conv2d.h"

#include <algorithm>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/im2col.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/loops.h"

namespace ringlet::impl {

namespace {

constexpr std::int64_t kColumns = 128;               // of one product, at least, where N allows it
constexpr std::int64_t kMaxParts = 8;                // partial filter gradients, summed in order
constexpr std::int64_t kPartialFloats = 16L << 20U;  // all of them together

/// The sizes of one convolution, and how it is cut into matrix products. A run of images and one
/// group of channels are one product of the group's weights [outputs, geometry.rows()] with the
/// run's columns [geometry.rows(), images * pixels].
struct Plan {
  ColumnGeometry geometry;
  std::int64_t images;  // N
  std::int64_t groups;
  std::int64_t outputs;  // output channels of one group
  std::int64_t pixels;   // of an output image
  std::int64_t run;      // images in one product
  bool pointwise;        // a 1x1 window on every pixel: the image itself is the columns

  std::int64_t runs() const { return (images + run - 1) / run; }
  std::int64_t run_length(std::int64_t first) const { return std::min(run, images - first); }
  std::int64_t weights() const { return outputs * geometry.rows(); }  // of one group
  std::int64_t column_floats() const { return pointwise ? 0 : geometry.rows() * run * pixels; }
  std::int64_t output_floats() const { return run == 1 ? 0 : outputs * run * pixels; }
  std::int64_t scratch_floats() const { return column_floats() + output_floats(); }

  /// Offset in x of image n, first channel of group g; and in y.
  std::int64_t x_offset(std::int64_t n, std::int64_t g) const {
    return n * geometry.image_stride + g * geometry.channels * geometry.height * geometry.width;
  }
  std::int64_t y_offset(std::int64_t n, std::int64_t g) const {
    return (n * groups + g) * outputs * pixels;
  }
};

Plan make_plan(const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y) {
  Plan plan{};
  plan.geometry = {spec, w[1], x[2], x[3], w[2], w[3], y[2], y[3], x[1] * x[2] * x[3]};
  plan.images = x[0];
  plan.groups = spec.groups;
  plan.outputs = w[0] / spec.groups;
  plan.pixels = y[2] * y[3];
  plan.pointwise =
      w[2] == 1 && w[3] == 1 && spec.stride == Extent2{1, 1} && spec.padding == Extent2{0, 0};
  plan.run = plan.pointwise ? 1 : (kColumns + plan.pixels - 1) / plan.pixels;
  return plan;
}

/// Scratch memory for one thread's products.
struct Scratch {
  float* columns;
  float* outputs;
};

Scratch scratch_of(const Plan& plan, float* workspace, int thread) {
  float* begin = workspace + thread * plan.scratch_floats();
  return {begin, begin + plan.column_floats()};
}

/// The columns of images [n, n + images), group g.
const float* columns_of(const Plan& plan, const float* x, std::int64_t n, std::int64_t images,
                        std::int64_t g, float* scratch) {
  if (plan.pointwise) return x + plan.x_offset(n, g);
  im2col(plan.geometry, x + plan.x_offset(n, g), images, scratch);
  return scratch;
}

/// dy of images [n, n + images), group g, as one matrix [outputs, images * pixels].
const float* gathered(const Plan& plan, const float* dy, std::int64_t n, std::int64_t images,
                      std::int64_t g, float* scratch) {
  if (images == 1) return dy + plan.y_offset(n, g);
  for (std::int64_t o = 0; o < plan.outputs; ++o) {
    for (std::int64_t image = 0; image < images; ++image) {
      const float* from = dy + plan.y_offset(n + image, g) + o * plan.pixels;
      std::copy(from, from + plan.pixels, scratch + (o * images + image) * plan.pixels);
    }
  }
  return scratch;
}

/// y = act(product + bias) for the product of a run; nothing to do where it lies in y already.
void store(const Plan& plan, const float* product, const float* bias, Activation activation,
           std::int64_t n, std::int64_t images, std::int64_t g, float* y) {
  if (images == 1 && bias == nullptr && activation == Activation::none) return;
  for (std::int64_t image = 0; image < images; ++image) {
    for (std::int64_t o = 0; o < plan.outputs; ++o) {
      finish_channel(product + (o * images + image) * plan.pixels,
                     bias == nullptr ? 0.0F : bias[g * plan.outputs + o], activation, plan.pixels,
                     y + plan.y_offset(n + image, g) + o * plan.pixels);
    }
  }
}

/// Before a gradient is added to images [n, n + images): dx = beta * dx.
void scale_images(const Plan& plan, float beta, std::int64_t n, std::int64_t images, float* dx) {
  float* begin = dx + n * plan.geometry.image_stride;
  float* end = begin + images * plan.geometry.image_stride;
  if (beta == 0) {
    std::fill(begin, end, 0.0F);
  } else if (beta != 1) {
    for (float* value = begin; value != end; ++value) *value *= beta;
  }
}

/// Calls f(first image, images, scratch) for every run, on all threads.
template <class F>
void for_each_run(CpuStream& stream, const Plan& plan, F f) {
  auto* workspace = stream.workspace_of<float>(plan.scratch_floats() * stream.threads());
  stream.parallel_for(plan.runs(), [&](std::int64_t begin, std::int64_t end, int thread) {
    const Scratch scratch = scratch_of(plan, workspace, thread);
    for (std::int64_t r = begin; r < end; ++r) {
      f(r * plan.run, plan.run_length(r * plan.run), scratch);
    }
  });
}

}  // namespace

void conv2d_forward(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x_view,
                    const ConstView& w_view, const ConstView& bias_view, Activation activation,
                    const View& y_view) {
  if (in_lanes(x_view)) {
    return lanes::conv2d_forward(stream, spec, x_view, w_view, bias_view, activation, y_view);
  }
  const Plan plan = make_plan(spec, x_view.shape(), w_view.shape(), y_view.shape());
  const std::int64_t rows = plan.geometry.rows();
  const float* x = x_view.f32();
  const float* w = w_view.f32();
  const float* bias = bias_view.absent() ? nullptr : bias_view.f32();
  float* y = y_view.f32();
  for_each_run(stream, plan, [&](std::int64_t n, std::int64_t images, const Scratch& scratch) {
    const std::int64_t width = images * plan.pixels;
    for (std::int64_t g = 0; g < plan.groups; ++g) {
      const float* columns = columns_of(plan, x, n, images, g, scratch.columns);
      float* product = images == 1 ? y + plan.y_offset(n, g) : scratch.outputs;
      gemm(plan.outputs, width, rows, {w + g * plan.weights(), rows}, {columns, width}, 0, product,
           width);
      store(plan, product, bias, activation, n, images, g, y);
    }
  });
}

void conv2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, const ConstView& w_view,
                          const ConstView& dy_view, float beta, const View& dx_view) {
  if (in_lanes(dy_view)) {
    return lanes::conv2d_backward_data(stream, spec, w_view, dy_view, beta, dx_view);
  }
  const Plan plan = make_plan(spec, dx_view.shape(), w_view.shape(), dy_view.shape());
  const std::int64_t rows = plan.geometry.rows();
  const float* w = w_view.f32();
  const float* dy = dy_view.f32();
  float* dx = dx_view.f32();
  for_each_run(stream, plan, [&](std::int64_t n, std::int64_t images, const Scratch& scratch) {
    const std::int64_t width = images * plan.pixels;
    if (!plan.pointwise) scale_images(plan, beta, n, images, dx);
    for (std::int64_t g = 0; g < plan.groups; ++g) {
      float* dx_group = dx + plan.x_offset(n, g);
      float* product = plan.pointwise ? dx_group : scratch.columns;
      gemm(rows, width, plan.outputs, {w + g * plan.weights(), rows, true},
           {gathered(plan, dy, n, images, g, scratch.outputs), width}, plan.pointwise ? beta : 0,
           product, width);
      if (!plan.pointwise) col2im_add(plan.geometry, product, images, dx_group);
    }
  });
}

namespace {

/// partial = the filter gradient of runs [begin, end).
void filter_gradient_of_runs(const Plan& plan, const float* x, const float* dy, std::int64_t begin,
                             std::int64_t end, const Scratch& scratch, float* partial) {
  const std::int64_t rows = plan.geometry.rows();
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t n = r * plan.run, images = plan.run_length(n);
    const std::int64_t width = images * plan.pixels;
    for (std::int64_t g = 0; g < plan.groups; ++g) {
      gemm(plan.outputs, rows, width, {gathered(plan, dy, n, images, g, scratch.outputs), width},
           {columns_of(plan, x, n, images, g, scratch.columns), width, true}, r == begin ? 0 : 1,
           partial + g * plan.weights(), rows);
    }
  }
}

}  // namespace

void conv2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x_view,
                            const ConstView& dy_view, float beta, const View& dw_view) {
  if (in_lanes(dy_view)) {
    return lanes::conv2d_backward_filter(stream, spec, x_view, dy_view, beta, dw_view);
  }
  const Plan plan = make_plan(spec, x_view.shape(), dw_view.shape(), dy_view.shape());
  const std::int64_t count = dw_view.count(), runs = plan.runs();
  const std::int64_t parts = std::min(
      runs,
      std::clamp<std::int64_t>(kPartialFloats / std::max<std::int64_t>(1, count), 1, kMaxParts));
  const float* x = x_view.f32();
  const float* dy = dy_view.f32();
  float* dw = dw_view.f32();
  auto* partials =
      stream.workspace_of<float>(parts * count + plan.scratch_floats() * stream.threads());
  stream.parallel_for(parts, [&](std::int64_t begin, std::int64_t end, int thread) {
    const Scratch scratch = scratch_of(plan, partials + parts * count, thread);
    for (std::int64_t part = begin; part < end; ++part) {
      filter_gradient_of_runs(plan, x, dy, runs * part / parts, runs * (part + 1) / parts, scratch,
                              partials + part * count);
    }
  });
  for_each_element(stream, count, [=](std::int64_t i) {
    float total = 0;
    for (std::int64_t part = 0; part < parts; ++part) total += partials[part * count + i];
    dw[i] = element::blend(beta, dw[i], total);
  });
}

}  // namespace ringlet::impl
