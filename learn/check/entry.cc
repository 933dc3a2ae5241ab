// What a learner's file is asked for, compiled into it with the same names renamed.
#include LEARNERS_HEADER

#include "comm/all_reduce/strategies.h"

extern "C" void learners_strategy(ringlet::comm::Strategy& strategy) {
  strategy = ringlet::comm::strategy_of<ringlet::comm::LEARNERS_CLASS>();
}
