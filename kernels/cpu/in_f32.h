// InF32: how a device computes with bf16 and f16 whose kernels know f32 alone.
//
//   InF32 in_f32(concrete_stream);
//   impl::relu_forward(concrete_stream, in_f32(x), in_f32(y));
//
// On the CPU a narrow view becomes an f32 one in scratch memory, with the same numbers. When
// `in_f32` ends, what the kernel left in those that it may write (View) is rounded to nearest, ties
// to even, and stored. So no kernel is written twice, and what an operation computes with narrow
// activations is by its f32 kernel's definition: the reference for devices that read and write
// sixteen bits themselves. It costs a pass over memory for each view, there and back.
//
// Where a device reads sixteen bits itself, every view goes through as it is: CUDA always, the CPU
// for what it says (`as_they_are`), such as convolutions in bf16 (kernels/cpu/lanes/bf16).
#pragma once

#include <array>

#include "kernels/cpu/cpu_device.h"
#include "kernels/tensor.h"

namespace ringlet {

template <class ConcreteStream>
class InF32 {
 public:
  explicit InF32(ConcreteStream&, bool /*as_they_are*/ = false) {}
  template <class AnyView>
  const AnyView& operator()(const AnyView& view) const {
    return view;
  }
};

template <>
class InF32<CpuStream> {
 public:
  explicit InF32(CpuStream& stream, bool as_they_are = false)
      : stream_(stream), as_they_are_(as_they_are) {}
  ~InF32();
  InF32(const InF32&) = delete;
  InF32& operator=(const InF32&) = delete;

  /// What is read alone. Other types than bf16 and f16, and absent views, stay as they are.
  ConstView operator()(const ConstView& view);
  /// What may be written. A view may lie where another one does: each has memory of its own, with
  /// what it held before the operation.
  View operator()(const View& view);
  /// What is no view.
  template <class Other>
  const Other& operator()(const Other& other) const {
    return other;
  }

 private:
  static constexpr int kMost = CpuStream::kScratches;
  struct Result {
    View wide, narrow;
  };
  bool widens(const ConstView& view) const;
  View widen(const ConstView& view);

  CpuStream& stream_;
  bool as_they_are_;
  int used_ = 0;     // scratches
  int results_ = 0;  // of them to be stored
  std::array<Result, kMost> stored_;
};

template <class ConcreteStream>
InF32(ConcreteStream&, bool = false) -> InF32<ConcreteStream>;

}  // namespace ringlet
