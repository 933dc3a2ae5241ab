#include "kernels/margin_softmax.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

/// f32 [rows, columns] of any such shape.
void require_matrix(const char* name, const ConstView& matrix) {
  require_rank(name, matrix, 2);
  require_dense(name, matrix, matrix.shape());
}

void require_products(const char* name, const ConstView& products, const ConstView& x_inverse,
                      const ConstView& w_inverse, const ConstView& labels, const ConstView& targets,
                      const ConstView& rows) {
  require_matrix(name, products);
  const std::int64_t samples = products.shape()[0];
  require_dense(name, x_inverse, Shape{samples});
  require_dense(name, w_inverse, Shape{products.shape()[1]});
  require_labels(name, labels, products);
  require_dense(name, targets, Shape{samples, 2});
  require_dense(name, rows, Shape{samples, 3});
}

}  // namespace

void inverse_norms(Stream& stream, ConstView x, View inverse) {
  constexpr const char* kName = "inverse_norms";
  require_matrix(kName, x);
  require_dense(kName, inverse, Shape{x.shape()[0]});
  const Work work{kName, 2.0 * static_cast<double>(x.count()), total_bytes(x, inverse)};
  dispatch(stream, work, impl::any::inverse_norms, x, inverse);
}

void margin_targets(Stream& stream, const MarginSpec& spec, ConstView x, ConstView w,
                    ConstView labels, std::int64_t first, ConstView epochs, View targets,
                    View cosines) {
  constexpr const char* kName = "margin_targets";
  require_matrix(kName, x);
  require_matrix(kName, w);
  require_dense(kName, w, Shape{w.shape()[0], x.shape()[1]});
  require_labels(kName, labels, x);
  if (!epochs.absent()) require_dense(kName, epochs, Shape{1});
  require_dense(kName, targets, Shape{x.shape()[0], 2});
  if (!cosines.absent()) require_dense(kName, cosines, Shape{x.shape()[0]});
  const Work work{kName, 6.0 * static_cast<double>(x.count()), total_bytes(x, x, targets)};
  dispatch(stream, work, impl::any::margin_targets, spec, x, w, labels, first, epochs, targets,
           cosines);
}

void margin_softmax_part(Stream& stream, const MarginSpec& spec, ConstView products,
                         ConstView x_inverse, ConstView w_inverse, ConstView labels,
                         std::int64_t first, ConstView targets, bool joins, View part) {
  constexpr const char* kName = "margin_softmax_part";
  require_products(kName, products, x_inverse, w_inverse, labels, targets, part);
  const Work work{kName, 6.0 * static_cast<double>(products.count()),
                  total_bytes(products, w_inverse, part)};
  dispatch(stream, work, impl::any::margin_softmax_part, spec, products, x_inverse, w_inverse,
           labels, first, targets, joins, part);
}

void margin_softmax_gradient(Stream& stream, const MarginSpec& spec, ConstView x_inverse,
                             ConstView w_inverse, ConstView labels, std::int64_t first,
                             ConstView targets, ConstView merged, ConstView dloss, View products) {
  constexpr const char* kName = "margin_softmax_gradient";
  require_products(kName, products, x_inverse, w_inverse, labels, targets, merged);
  require_dense(kName, dloss, Shape{1});
  const Work work{kName, 8.0 * static_cast<double>(products.count()),
                  total_bytes(products, products, w_inverse)};
  dispatch(stream, work, impl::any::margin_softmax_gradient, spec, x_inverse, w_inverse, labels,
           first, targets, merged, dloss, products);
}

void project_rows(Stream& stream, ConstView x, ConstView inverse, View g) {
  constexpr const char* kName = "project_rows";
  require_matrix(kName, x);
  require_dense(kName, inverse, Shape{x.shape()[0]});
  require_dense(kName, g, x.shape());
  const Work work{kName, 4.0 * static_cast<double>(x.count()), total_bytes(x, g, g)};
  dispatch(stream, work, impl::any::project_rows, x, inverse, g);
}

void margin_angles(Stream& stream, const MarginSpec& spec, ConstView cosines, ConstView parts,
                   std::int64_t begin, std::int64_t end, View sums) {
  constexpr const char* kName = "margin_angles";
  require_dense(kName, cosines, Shape{cosines.count()});
  require_rank(kName, parts, 3);
  require_dense(kName, parts, Shape{parts.shape()[0], parts.shape()[1], 3});
  require(0 <= begin && begin <= end && end <= parts.shape()[1], kName,
          "the samples are of those of the parts");
  require_dense(kName, sums, Shape{4});
  const Work work{kName, 20.0 * static_cast<double>(cosines.count() + end - begin),
                  total_bytes(cosines, parts)};
  dispatch(stream, work, impl::any::margin_angles, spec, cosines, parts, begin, end, sums);
}

void softmax_shards_right(Stream& stream, ConstView parts, ConstView merged, ConstView x_inverse,
                          std::int64_t begin, std::int64_t end, View right) {
  constexpr const char* kName = "softmax_shards_right";
  require_rank(kName, parts, 3);
  require_dense(kName, parts, parts.shape());
  require_dense(kName, merged, Shape{parts.shape()[1], 3});
  require_dense(kName, x_inverse, Shape{merged.shape()[0]});
  require(0 <= begin && begin <= end && end <= merged.shape()[0], kName,
          "the samples are of those that were merged");
  require_dtype(kName, right, DType::i32);
  require_shape(kName, right, Shape{2});
  const Work work{kName, static_cast<double>(parts.shape()[0] * (end - begin)),
                  total_bytes(merged)};
  dispatch(stream, work, impl::any::softmax_shards_right, parts, merged, x_inverse, begin, end,
           right);
}

}  // namespace ringlet
