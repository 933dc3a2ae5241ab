#include "comm/all_reduce/halving_doubling.h"

#include <bit>

#include "comm/all_reduce/parts.h"

namespace ringlet::comm {

HalvingDoublingAllReduce::HalvingDoublingAllReduce(Transport& transport)
    : FoldingAllReduce(transport), steps_(std::countr_zero(static_cast<unsigned>(power()))) {}

void HalvingDoublingAllReduce::run_on_power(Stream& stream, const View& data, ReduceOp op) {
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
}

PathCost HalvingDoublingAllReduce::path_cost(int ranks, double bytes) {
  const int power = power_of(ranks);
  const double halves = bytes * (power - 1) / power;
  return with_folds(ranks, bytes, {2 * levels_of(power), 2 * halves, halves});
}

LevelCosts HalvingDoublingAllReduce::level_costs(int machines, int each, double bytes) {
  LevelCosts costs{path_cost(machines, bytes), path_cost(each, bytes / power_of(machines))};
  costs.between.bytes *= each;
  return costs;
}

/// The ranges of this rank, from the whole to its q-th part.
HalvingDoublingAllReduce::Steps HalvingDoublingAllReduce::halve(std::int64_t count) const {
  Steps steps{};
  std::int64_t begin = 0, end = count;
  for (int step = 0; step < steps_; ++step) {
    const std::int64_t middle = begin + part_begin(end - begin, 2, 1);
    const bool keeps_lower = (rank() & (power() >> (step + 1))) == 0;
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

std::int64_t HalvingDoublingAllReduce::elements_sent_on_power(std::int64_t count) const {
  const Steps halves = halve(count);
  std::int64_t elements = 0;
  for (int step = 0; step < steps_; ++step) {
    const Halves& h = halves[static_cast<std::size_t>(step)];
    elements += h.end - h.begin;  // one half on the way there, the other on the way back
  }
  return elements;
}

}  // namespace ringlet::comm
