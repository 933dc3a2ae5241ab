#include LEARNERS_HEADER

namespace ringlet::comm {

LEARNERS_CLASS::LEARNERS_CLASS(Transport& transport)
    : AllReduce(transport), peers_(peers_of(transport, kName)) {}

}  // namespace ringlet::comm
