#include LEARNERS_HEADER

#include "comm/all_reduce/strategies.h"

namespace ringlet::comm {

PathCost LEARNERS_CLASS::path_cost(int ranks, double bytes) {
  return Strategies().find(kName)->path_cost(ranks, bytes);
}

}  // namespace ringlet::comm
