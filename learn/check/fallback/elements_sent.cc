#include LEARNERS_HEADER

#include "comm/all_reduce/strategies.h"

namespace ringlet::comm {

std::optional<std::int64_t> LEARNERS_CLASS::elements_sent(std::int64_t count) const {
  return make_all_reduce(kName, transport())->elements_sent(count);
}

}  // namespace ringlet::comm
