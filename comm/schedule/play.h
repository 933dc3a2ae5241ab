// Playing a schedule: when each step would begin and end on a network.
//
// A message begins when both of its ranks have come to it, and takes
//
//   latency + bytes x seconds per byte
//
// What is added when it arrives takes its receiver the reduced bytes' seconds more. An exchange
// ends with the later of its sides. A meeting ends one latency after the last rank has come, that
// of the slowest rank. A touch takes the bytes that it moves and reduces, and no latency.
//
// The messages that pass a machine's link at one time share it equally, and each passes its two
// links as fast as the slower lets it. The link carries bytes only: latencies do not wait for each
// other. What a slow rank sends, receives and adds takes its factor longer; of two, the larger
// counts. On a link its message stands for so many more bytes, and holds up the others there.
//
// So where all ranks step alike, a strategy takes what path_cost and level_costs say. What is not
// modelled: packets, congestion, and ranks that share a processor.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/schedule/network.h"
#include "comm/schedule/schedule.h"

namespace ringlet::comm {

/// Steps count from 0; times are in seconds from the beginning.
struct PlayedMessage {
  int from = 0, to = 0;
  std::uint32_t out_step = 0, in_step = 0;
  double begin_s = 0;
  double arrived_s = 0;   ///< where it is added, that is still to be done
  double combined_s = 0;  ///< the receiver is done with it
};
struct PlayedStep {
  int rank = 0;
  std::uint32_t step = 0;
  double begin_s = 0, end_s = 0;  ///< it came and went on
};

/// What is told of the play; a function that is empty is told nothing. They
/// are told in the order in which they are found, which is not that of time.
struct PlayListener {
  std::function<void(const PlayedMessage& message)> message{};
  std::function<void(const PlayedStep& step)> step{};
};

/// When each rank ends. Throws ContractError with the words of find_problem() where they do not.
/// `begin_s`: when each begins; empty: all at 0.
std::vector<double> play(const Schedule& schedule, const Network& network,
                         const PlayListener& listener = {}, std::vector<double> begin_s = {});
/// When the last of them ends.
double seconds_of(const Schedule& schedule, const Network& network);

}  // namespace ringlet::comm
