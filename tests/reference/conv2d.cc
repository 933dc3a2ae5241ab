// Apart from the tests, which sanitizers' builds do not optimise: these loops would be slow there.
#include "tests/reference/conv2d.h"

#include <cstdint>

namespace ringlet::test::reference {
namespace {

/// Calls f(x_index, w_index, y_index) for every product that the convolution adds to y. Forward,
/// data gradient and filter gradient are the same list of products, summed to another tensor.
template <class F>
void for_each_product(const Conv2dSpec& spec, const Shape& x, const Shape& w, F f) {
  const Shape y = conv2d_output_shape(spec, x, w);
  const std::int64_t outputs_per_group = w[0] / spec.groups;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j)
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t p = 0; p < w[2]; ++p)
              for (std::int64_t q = 0; q < w[3]; ++q) {
                const std::int64_t channel = o / outputs_per_group * w[1] + c;
                const std::int64_t h = i * spec.stride.h - spec.padding.h + p * spec.dilation.h;
                const std::int64_t v = j * spec.stride.w - spec.padding.w + q * spec.dilation.w;
                if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                f(((n * x[1] + channel) * x[2] + h) * x[3] + v,
                  ((o * w[1] + c) * w[2] + p) * w[3] + q, ((n * y[1] + o) * y[2] + i) * y[3] + j);
              }
}

}  // namespace

template <class T>
std::vector<T> conv2d_forward(const Conv2dSpec& spec, const Shape& x_shape, const Shape& w_shape,
                              const std::vector<T>& x, const std::vector<T>& w) {
  std::vector<T> y(conv2d_output_shape(spec, x_shape, w_shape).count());
  for_each_product(spec, x_shape, w_shape,
                   [&](auto xi, auto wi, auto yi) { y[yi] += x[xi] * w[wi]; });
  return y;
}

template <class T>
std::vector<T> conv2d_backward_data(const Conv2dSpec& spec, const Shape& x_shape,
                                    const Shape& w_shape, const std::vector<T>& w,
                                    const std::vector<T>& dy) {
  std::vector<T> dx(x_shape.count());
  for_each_product(spec, x_shape, w_shape,
                   [&](auto xi, auto wi, auto yi) { dx[xi] += dy[yi] * w[wi]; });
  return dx;
}

template <class T>
std::vector<T> conv2d_backward_filter(const Conv2dSpec& spec, const Shape& x_shape,
                                      const Shape& w_shape, const std::vector<T>& x,
                                      const std::vector<T>& dy) {
  std::vector<T> dw(w_shape.count());
  for_each_product(spec, x_shape, w_shape,
                   [&](auto xi, auto wi, auto yi) { dw[wi] += dy[yi] * x[xi]; });
  return dw;
}

template std::vector<float> conv2d_forward(const Conv2dSpec&, const Shape&, const Shape&,
                                           const std::vector<float>&, const std::vector<float>&);
template std::vector<float> conv2d_backward_data(const Conv2dSpec&, const Shape&, const Shape&,
                                                 const std::vector<float>&,
                                                 const std::vector<float>&);
template std::vector<float> conv2d_backward_filter(const Conv2dSpec&, const Shape&, const Shape&,
                                                   const std::vector<float>&,
                                                   const std::vector<float>&);
template std::vector<double> conv2d_forward(const Conv2dSpec&, const Shape&, const Shape&,
                                            const std::vector<double>&, const std::vector<double>&);
template std::vector<double> conv2d_backward_data(const Conv2dSpec&, const Shape&, const Shape&,
                                                  const std::vector<double>&,
                                                  const std::vector<double>&);
template std::vector<double> conv2d_backward_filter(const Conv2dSpec&, const Shape&, const Shape&,
                                                    const std::vector<double>&,
                                                    const std::vector<double>&);

}  // namespace ringlet::test::reference
