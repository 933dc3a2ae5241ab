#include LEARNERS_HEADER

namespace ringlet::comm {

LEARNERS_CLASS::~LEARNERS_CLASS() = default;

}  // namespace ringlet::comm
