// Views: the arguments of kernels. A view is a pointer with a shape, an element type and a memory
// layout; it owns nothing. Memory is owned by Buffer and Arena (memory.h).
//
// Layouts of a tensor with shape [N, C, H, W]:
//
//   nchw   [N][C][H][W]                row-major, the last extent fastest
//   lanes  [ceil(N/16)][C][H][W][16]   sixteen samples side by side in one vector register
//   nhwc   [N][H][W][C]                a pixel's channels side by side, as tensor cores want them
//
// Weights and all tensors of rank 0, 1 and 3 are nchw. Of a tensor with shape [N, F], nchw is
// [N][F] and lanes is [ceil(N/16)][F][16]; there is no nhwc of it. CPUs have lanes, GPUs nhwc.
//
// In lanes layout the last block may be partly filled. The lanes beyond N always hold finite
// numbers (zero where nothing else is natural). Gradients there are zero from the loss on, so whole
// blocks can be computed without a mask.
//
// Activations and their gradients may be narrow: bf16 or f16 instead of f32. An operation takes
// them where its header says "activations"; all activations of a call are then of one type, and
// weights that they are multiplied with are of the same (nn/parameters.h keeps them). Everything
// else stays f32: biases, parameters of norms, statistics, losses, gradients of parameters, and
// every sum while it is made. What is stored as narrow is rounded to nearest, ties to even, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "kernels/shape.h"

namespace ringlet {

enum class DType : std::uint8_t { f32, bf16, f16, u8, i32 };
enum class Layout : std::uint8_t { nchw, lanes, nhwc };

/// Samples in one block of the lanes layout.
inline constexpr std::int64_t kLanes = 16;

/// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  constexpr std::int64_t kBytes[] = {4, 2, 2, 1, 4};
  return kBytes[static_cast<std::size_t>(dtype)];
}
const char* name_of(DType dtype);  ///< "f32"
const char* name_of(Layout layout);

/// Whether it is one of the floats of sixteen bits.
constexpr bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

/// Blocks of sixteen that hold `samples`.
constexpr std::int64_t lane_blocks(std::int64_t samples) { return (samples + kLanes - 1) / kLanes; }

/// Whether a tensor [N, C, H, W] lies in memory alike in nchw and nhwc: one channel, or one pixel.
bool is_alike_in_nhwc(const Shape& shape);

/// storage_count() in lanes and nhwc. Throws ContractError for a shape that the layout is not for.
std::int64_t storage_count_by_layout(const Shape& shape, Layout layout);
/// Elements that a tensor takes in memory: count(), but with N rounded up to 16 in lanes layout.
inline std::int64_t storage_count(const Shape& shape, Layout layout) {
  return layout == Layout::nchw ? shape.count() : storage_count_by_layout(shape, layout);
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};

/// Where the device `meta` has its addresses: no memory is there on any machine.
inline constexpr std::uintptr_t kMetaMemory = std::uintptr_t{1} << 62;

/// The memory of a dry run was about to be read or written: a layer of a program's own has not
/// asked whether there is any.
class NoMemoryError : public ContractError {
 public:
  explicit NoMemoryError(const std::string& message, At at = At::current())
      : ContractError(message, at) {}
};

[[noreturn]] void throw_no_memory();

/// Address, shape, type and layout, shared by View and ConstView.
template <class Pointer>
class BasicView {
 public:
  BasicView() = default;
  BasicView(Pointer data, const Shape& shape, DType dtype = DType::f32,
            Layout layout = Layout::nchw)
      : data_(data), shape_(shape), dtype_(dtype), layout_(layout) {}

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Layout layout() const { return layout_; }
  /// Where the elements are. Throws NoMemoryError on the device `meta`, which has none.
  Pointer data() const {
    if (reinterpret_cast<std::uintptr_t>(data_) >> 62 == kMetaMemory >> 62) throw_no_memory();
    return data_;
  }
  /// The same as a number among others, also on the device `meta`: not to be read from.
  Pointer address() const { return data_; }
  /// True for a default-constructed view: an optional argument that was left out.
  bool absent() const { return data_ == nullptr; }
  std::int64_t count() const { return shape_.count(); }
  std::int64_t storage() const { return storage_count(shape_, layout_); }
  std::int64_t bytes() const { return storage() * size_of(dtype_); }

 protected:
  Pointer data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
  Layout layout_ = Layout::nchw;
};

class View : public BasicView<void*> {
 public:
  using BasicView::BasicView;
  /// Typed address. T must be the element type.
  template <class T>
  T* as() const {
    require(dtype_ == DTypeOf<T>::value, "View::as", "the element type is another one");
    return static_cast<T*>(data());
  }
  float* f32() const { return as<float>(); }
  /// The same memory seen with another shape of equal count (and equal N in lanes layout). What is
  /// alike in nchw and nhwc may be seen otherwise in nhwc too, and is nchw then.
  View reshaped(const Shape& shape) const;
  /// Elements [begin, end) of a rank-1 view.
  View slice(std::int64_t begin, std::int64_t end) const;
};

class ConstView : public BasicView<const void*> {
 public:
  using BasicView::BasicView;
  ConstView(const View& view)  // NOLINT: a View is readable wherever a ConstView is
      : BasicView(view.address(), view.shape(), view.dtype(), view.layout()) {}
  template <class T>
  const T* as() const {
    require(dtype_ == DTypeOf<T>::value, "ConstView::as", "the element type is another one");
    return static_cast<const T*>(data());
  }
  const float* f32() const { return as<float>(); }
  ConstView reshaped(const Shape& shape) const;
  ConstView slice(std::int64_t begin, std::int64_t end) const;
};

/// "f32 [64, 1, 28, 28] lanes": for messages.
std::string describe(const ConstView& view);

/// Throw ContractError naming `operation` and both views unless they agree.
void require_same_shape(const char* operation, const ConstView& a, const ConstView& b,
                        At at = At::current());
[[noreturn]] void throw_of_another_kind(const char* operation, const ConstView& a,
                                        const ConstView& b, At at);
/// The same shape, dtype and layout.
inline void require_same_kind(const char* operation, const ConstView& a, const ConstView& b,
                              At at = At::current()) {
  if (a.shape() == b.shape() && a.dtype() == b.dtype() && a.layout() == b.layout()) return;
  throw_of_another_kind(operation, a, b, at);
}
void require_shape(const char* operation, const ConstView& view, const Shape& shape,
                   At at = At::current());
void require_dtype(const char* operation, const ConstView& view, DType dtype,
                   At at = At::current());

}  // namespace ringlet
