#include "kernels/tensor.h"

namespace ringlet {

void throw_no_memory() {
  throw NoMemoryError(
      "the dry run on the device meta has shapes and no memory, and nothing may be read or written "
      "there; ask for DeviceKind::meta first, as examples/own_layer.cc does");
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
  }
  return "?";
}

const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::nchw:
      return "nchw";
    case Layout::lanes:
      return "lanes";
    case Layout::nhwc:
      return "nhwc";
  }
  return "?";
}

bool is_alike_in_nhwc(const Shape& shape) {
  return shape.rank() == 4 && (shape[1] == 1 || shape[2] * shape[3] == 1);
}

std::int64_t storage_count_by_layout(const Shape& shape, Layout layout) {
  const bool is_nhwc = layout == Layout::nhwc;
  require(shape.rank() == 4 || (shape.rank() == 2 && !is_nhwc), "storage_count",
          is_nhwc ? "the nhwc layout is for shapes [N, C, H, W]"
                  : "the lanes layout is for shapes [N, F] and [N, C, H, W]");
  return is_nhwc ? shape.count() : lane_blocks(shape[0]) * kLanes * shape.count_per_sample();
}

namespace {

template <class V>
V reshape(const V& view, const Shape& shape) {
  const bool same = shape == view.shape();
  const bool batch_kept =
      shape.rank() > 0 && view.shape().rank() > 0 && shape[0] == view.shape()[0];
  const bool possible = view.layout() == Layout::nchw || same ||
                        (view.layout() == Layout::lanes && batch_kept) ||
                        (view.layout() == Layout::nhwc && is_alike_in_nhwc(view.shape()));
  if (shape.count() != view.count() || !possible) {
    const bool by_layout = shape.count() == view.count() && view.layout() == Layout::nhwc;
    throw ContractError("reshaped: " + describe(view) + " cannot be seen as " + shape.to_string() +
                        (by_layout ? "; nn::flatten copies it, or use --layout nchw" : ""));
  }
  const bool rows = view.layout() == Layout::nhwc && !same;
  return V(view.address(), shape, view.dtype(), rows ? Layout::nchw : view.layout());
}

}  // namespace

View View::reshaped(const Shape& shape) const { return reshape(*this, shape); }
ConstView ConstView::reshaped(const Shape& shape) const { return reshape(*this, shape); }

View View::slice(std::int64_t begin, std::int64_t end) const {
  require(shape_.rank() == 1 && 0 <= begin && begin <= end && end <= count(), "View::slice",
          "the range does not lie within a rank-1 view");
  return {static_cast<std::byte*>(data_) + begin * size_of(dtype_), {end - begin}, dtype_};
}

ConstView ConstView::slice(std::int64_t begin, std::int64_t end) const {
  require(shape_.rank() == 1 && 0 <= begin && begin <= end && end <= count(), "ConstView::slice",
          "the range does not lie within a rank-1 view");
  return {static_cast<const std::byte*>(data_) + begin * size_of(dtype_), {end - begin}, dtype_};
}

std::string describe(const ConstView& view) {
  return std::string(name_of(view.dtype())) + " " + view.shape().to_string() + " " +
         name_of(view.layout());
}

void require_same_shape(const char* operation, const ConstView& a, const ConstView& b, At at) {
  if (a.shape() == b.shape()) return;
  throw ContractError(
      std::string(operation) + ": the shapes differ, " + describe(a) + " and " + describe(b), at);
}

void throw_of_another_kind(const char* operation, const ConstView& a, const ConstView& b, At at) {
  throw ContractError(std::string(operation) + ": the tensors differ in shape, type or layout, " +
                          describe(a) + " and " + describe(b),
                      at);
}

void require_shape(const char* operation, const ConstView& view, const Shape& shape, At at) {
  if (view.shape() == shape) return;
  throw ContractError(std::string(operation) + ": " + describe(view) + " should have the shape " +
                          shape.to_string(),
                      at);
}

void require_dtype(const char* operation, const ConstView& view, DType dtype, At at) {
  if (view.dtype() == dtype) return;
  throw ContractError(
      std::string(operation) + ": " + describe(view) + " should be " + name_of(dtype), at);
}

}  // namespace ringlet
