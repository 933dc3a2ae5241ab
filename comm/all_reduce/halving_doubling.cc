#include "comm/all_reduce/halving_doubling.h"

#include <bit>

#include "comm/all_reduce/parts.h"

namespace ringlet::comm {

HalvingDoublingAllReduce::HalvingDoublingAllReduce(Transport& transport)
    : AllReduce(transport),
      power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(transport.size())))),
      steps_(std::countr_zero(static_cast<unsigned>(power_))) {}

void HalvingDoublingAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (folds_in()) {
    transport().send(stream, rank() - power_, data);
    transport().receive(stream, rank() - power_, data);
    return;
  }
  if (has_fold()) transport().receive(stream, rank() + power_, data, combine_of(op));
  const Steps halves = halve(data.count());
  for (int step = 0; step < steps_; ++step) {
    const Halves& h = halves[static_cast<std::size_t>(step)];
    transport().exchange(stream, partner(step), h.sent_of(data), partner(step), h.kept_of(data),
                         combine_of(op));
  }
  finish(stream, steps_ == 0 ? data : halves[static_cast<std::size_t>(steps_ - 1)].kept_of(data),
         op);
  for (int step = steps_ - 1; step >= 0; --step) {
    const Halves& h = halves[static_cast<std::size_t>(step)];
    transport().exchange(stream, partner(step), h.kept_of(data), partner(step), h.sent_of(data));
  }
  if (has_fold()) transport().send(stream, rank() + power_, data);
}

/// The ranges of this rank, from the whole to its q-th part.
HalvingDoublingAllReduce::Steps HalvingDoublingAllReduce::halve(std::int64_t count) const {
  Steps steps{};
  std::int64_t begin = 0, end = count;
  for (int step = 0; step < steps_; ++step) {
    const std::int64_t middle = begin + part_begin(end - begin, 2, 1);
    const bool keeps_lower = (rank() & (power_ >> (step + 1))) == 0;
    steps[static_cast<std::size_t>(step)] = {begin, middle, end, keeps_lower};
    (keeps_lower ? end : begin) = middle;
  }
  return steps;
}

View HalvingDoublingAllReduce::Halves::kept_of(const View& data) const {
  return keeps_lower ? data.slice(begin, middle) : data.slice(middle, end);
}

View HalvingDoublingAllReduce::Halves::sent_of(const View& data) const {
  return keeps_lower ? data.slice(middle, end) : data.slice(begin, middle);
}

std::optional<std::int64_t> HalvingDoublingAllReduce::elements_sent(std::int64_t count) const {
  if (folds_in()) return count;
  const Steps halves = halve(count);
  std::int64_t elements = has_fold() ? count : 0;
  for (int step = 0; step < steps_; ++step) {
    const Halves& h = halves[static_cast<std::size_t>(step)];
    elements += h.end - h.begin;  // one half on the way there, the other on the way back
  }
  return elements;
}

}  // namespace ringlet::comm
