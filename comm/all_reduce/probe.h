// A probe: which strategies are the fastest for these ranks where they are now, told by timing them
// for some milliseconds. What stated costs (cost_model.h) cannot know is seen: how far the ranks'
// processors are from each other, how many ranks share one, how fast each way of copying is here.
//
// Powers of two of bytes are timed, from 64 on, or from 1024 where ranks take turns on processors:
// at first a few of them far apart, then those between as long as there is time. Between two that
// were timed a strategy is taken to cost so much a call and so much a byte.
//
// A size's strategies take turns of a few calls each, as a training calls the same one again and
// again: the first call of a turn still finds the caches as another strategy left them, and does
// not count. A call lasts from a barrier until its slowest rank has read the result, of which some
// strategies leave a part in another rank's cache. Where ranks reach each other's memory and take
// no turns, one of 4 KiB and less begins at a time on which they agreed, a moment behind another
// call of the strategy, which does not count. Of all that count the lower quartile does: other work
// only ever adds time. Strategies that are far behind at two sizes, and move no fewer bytes than
// what is ahead, are not tried at larger ones. Of those within 6 % of the fastest, 15 where ranks
// take turns, it takes the one with the least stated costs, which is rarely far behind where
// processors come to lie otherwise; of those that state as much, the fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/all_reduce/strategies.h"
#include "comm/all_reduce/strategy_table.h"

namespace ringlet::comm {

struct ProbeOptions {
  double seconds = 0.035;          ///< about how long all of it may take
  std::int64_t largest = 4 << 20;  ///< bytes, >= 1024; beyond, times grow with the bytes
  bool only_least = false;         ///< times the smallest size and no other
};

struct ProbedTime {
  std::int64_t bytes = 0;
  std::string strategy;
  double seconds = 0;
};

struct ProbeResult {
  StrategyTable table;            ///< for as many ranks
  std::vector<ProbedTime> times;  ///< by bytes, then in the order of strategies
  double seconds = 0;             ///< that rank 0 took
  bool disturbed = false;         ///< other work kept ranks on one processor that had one each
};

/// What a call of so many bytes takes, by what calls of fewer and of more took.
double seconds_between(const ProbedTime& fewer, const ProbedTime& more, std::int64_t bytes);

/// Which of several strategies a probe takes, by the seconds that it measured and those that are
/// stated: of those within `equal` times the fastest the one with the least stated, which holds for
/// processors near and far: a host may move a virtual machine's between the probe and the sums. Of
/// those that state as much, to 5 %, the fastest. Infinite: not known; where nothing is, all are
/// equal. There is one at least.
std::size_t choose_of(std::span<const double> measured, std::span<const double> stated,
                      double equal);

/// Collective over the transport's ranks, on the thread that runs `stream`, which runs in place.
/// The same on every rank. `memory`: this rank's, f32 [>= options.largest / 4], of the transport's
/// allocator; what it held is lost. One rank, or no strategy: an empty table.
ProbeResult probe(Transport& transport, const Strategies& strategies, Stream& stream,
                  const View& memory, const ProbeOptions& options = {});

}  // namespace ringlet::comm
