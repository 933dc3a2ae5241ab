#include LEARNERS_HEADER

namespace ringlet::comm {

void LEARNERS_CLASS::run_narrow(Stream& stream, const View& data, const View& wire) {
  AllReduce::run_narrow(stream, data, wire);
}

}  // namespace ringlet::comm
