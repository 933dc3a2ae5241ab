#include "bench/all_reduce/pinning.h"

#include <sched.h>

namespace ringlet::bench {

bool can_pin(int ranks) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) >= ranks;
}

void pin_rank(int rank) {
  cpu_set_t allowed, chosen;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int left = rank;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || left-- > 0) continue;
    CPU_ZERO(&chosen);
    CPU_SET(processor, &chosen);
    sched_setaffinity(0, sizeof chosen, &chosen);  // if it fails, the rank is where it was
    return;
  }
}

}  // namespace ringlet::bench
