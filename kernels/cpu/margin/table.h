// The functions of this folder, each compiled for its instruction set.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"
#include "kernels/margin.h"

namespace ringlet::impl {

/// A row of products, and what its logits are made of.
struct MarginRow {
  margin::Others others;
  std::int64_t classes;
  float x_inverse;
  const float* w_inverse;  ///< [classes]
  std::int64_t target;     ///< the class of the sample's own, or one that is not here
  margin::Target of_target;
};

/// The loops of an instruction set.
struct MarginLoops {
  /// a . b in double, in an order that depends on n alone.
  double (*dot)(const float* a, const float* b, std::int64_t n);
  /// Largest logit of the others, sum of exponentials below it or the target's, and that.
  margin::Part (*part)(const MarginRow& row, const float* products);
  /// products become the gradient; largest and sum are those of all classes.
  void (*gradient)(const MarginRow& row, float largest, float sum, float dloss, float* products);
  /// g = margin::projected(x, inverse, dot, g), a number after the other.
  void (*project)(const float* x, double inverse, double dot, float* g, std::int64_t n);
};

MarginLoops margin_loops_of(PortableSet);
MarginLoops margin_loops_of(NeonSet);
MarginLoops margin_loops_of(Avx2Set);
MarginLoops margin_loops_of(Avx512Set);

}  // namespace ringlet::impl
