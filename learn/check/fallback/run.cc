#include LEARNERS_HEADER

#include "comm/all_reduce/strategies.h"

namespace ringlet::comm {

void LEARNERS_CLASS::run(Stream& stream, View data, ReduceOp op) {
  make_all_reduce(kName, transport())->run(stream, data, op);
}

}  // namespace ringlet::comm
