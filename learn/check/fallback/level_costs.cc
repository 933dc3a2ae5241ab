#include LEARNERS_HEADER

#include "comm/all_reduce/strategies.h"

namespace ringlet::comm {

LevelCosts LEARNERS_CLASS::level_costs(int machines, int each, double bytes) {
  return Strategies().find(kName)->level_costs(machines, each, bytes, {});
}

}  // namespace ringlet::comm
