// The dropout of kernels/dropout.h, said as plainly as possible. x is [n, features]; T is float or
// double. Backward is forward applied to dy: the mask does not depend on x.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dropout.h"
#include "kernels/philox.h"

namespace ringlet::reference {

template <class T>
std::vector<T> dropout(const DropoutSpec& spec, std::int64_t features, std::vector<T> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t n = i / features, f = i % features;
    const PhiloxBlock words = philox(spec.key, f / 4, spec.first_sample + n);
    const bool kept = uniform01(words[f % 4]) >= spec.probability;
    x[i] = kept ? x[i] / (T{1} - static_cast<T>(spec.probability)) : T{0};
  }
  return x;
}

}  // namespace ringlet::reference
