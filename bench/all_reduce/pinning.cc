#include "bench/all_reduce/pinning.h"

#include <sched.h>

namespace ringlet::bench {

bool can_pin(int ranks) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) >= ranks;
}

bool pin_rank(int rank) {
  cpu_set_t allowed, chosen;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  int skip = rank % CPU_COUNT(&allowed), processor = 0;
  while (!CPU_ISSET(processor, &allowed) || skip-- > 0) ++processor;
  CPU_ZERO(&chosen);
  CPU_SET(processor, &chosen);
  return sched_setaffinity(0, sizeof chosen, &chosen) == 0;
}

}  // namespace ringlet::bench
