#include "split.h"

#include <algorithm>

namespace ringlet::learn {

Share share_of(int rank, int ranks, int batch) {
  const auto begin_of = [ranks, batch](int r) {
    return r * (batch / ranks) + std::min(r, batch % ranks);
  };
  return {begin_of(rank), begin_of(rank + 1)};
}

double contribution(double own_mean, int own, int /*ranks*/, int batch) {
  return own_mean * own / batch;
}

}  // namespace ringlet::learn
