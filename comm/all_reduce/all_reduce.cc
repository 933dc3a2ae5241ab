#include "comm/all_reduce/all_reduce.h"

#include "base/error.h"
#include "comm/all_reduce/collectives.h"

namespace ringlet::comm {

void AllReduce::finish(Stream& stream, View part, ReduceOp op) const {
  finish_reduction(stream, part, op, size());
}

void AllReduce::run_narrow(Stream&, const View&, const View&) {
  require(false, name(), "does not narrow what goes between machines");
}

std::optional<std::int64_t> AllReduce::bytes_sent(std::int64_t count, DType dtype) const {
  const auto elements = elements_sent(count);
  if (!elements) return std::nullopt;
  return *elements * size_of(dtype);
}

}  // namespace ringlet::comm
