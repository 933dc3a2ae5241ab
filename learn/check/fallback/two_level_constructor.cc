#include LEARNERS_HEADER

namespace ringlet::comm {

LEARNERS_CLASS::LEARNERS_CLASS(Transport& transport) : AllReduce(transport) {}

}  // namespace ringlet::comm
