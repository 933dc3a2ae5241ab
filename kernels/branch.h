// Branch: work that need not wait for what follows it, inside a captured step.
//
//   {
//     const Branch branch(stream, flops);
//     conv2d_backward_filter(stream, ...);    the branch
//   }
//   conv2d_backward_data(stream, ...);        runs beside it
//   Branch::join(stream);                     what follows comes behind both
//
// On CUDA's compute stream, while it is captured, the branch's work goes to a stream of its own,
// with a workspace of its own, by the plans that it has anyway: not a bit changes. Everywhere else,
// and where there is too little work to be worth two more edges, all runs one after the other.
#pragma once

#include "kernels/stream.h"

namespace ringlet {

class Branch {
 public:
  /// `flops`: of the smaller of the two that may run side by side.
  Branch(Stream& stream, double flops);
  ~Branch();
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  /// Nothing that the branch or its other side uses may be given away before.
  static void join(Stream& stream);

 private:
  [[maybe_unused]] Stream* stream_;  // null: all goes one after the other
};

}  // namespace ringlet
