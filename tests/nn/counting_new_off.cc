#include "tests/nn/counting_new.h"

namespace ringlet::test {

std::int64_t operator_new_calls() { return -1; }

}  // namespace ringlet::test
