// The count of right answers of kernels/classify.h, said as plainly as possible. logits
// [N, classes], labels [N]; T is float or double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace ringlet::test::reference {

/// Per class k: [2k] samples with this label, [2k+1] those of them that are answered right.
template <class T>
std::vector<std::int32_t> argmax_count(std::int64_t classes, const std::vector<T>& logits,
                                       const std::vector<std::int32_t>& labels) {
  std::vector<std::int32_t> count(2 * classes);
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const T* z = logits.data() + n * classes;
    std::int64_t best = -1;
    for (std::int64_t k = 0; k < classes; ++k) {
      if (!std::isnan(z[k]) && (best < 0 || z[k] > z[best])) best = k;
    }
    count[2 * labels[n]] += 1;
    count[2 * labels[n] + 1] += best == labels[n] ? 1 : 0;
  }
  return count;
}

}  // namespace ringlet::test::reference
