// Whether a row of the benchmark counts, and how sure its median is.
//
// The calls of a row are made in rounds, between which the other strategies of the size have their
// turns. So what comes and goes within a second meets all of them alike, and shows: the medians of
// a row's rounds then differ.
//
// The interval. Of n rounds, sorted by their medians, the k-th from below and the k-th from above
// have the true median between them with the probability 1 - 2 P(B < k), where B is binomial (n,
// 1/2): order statistics, which ask nothing of the shape of the noise. Of the k with 95 % or more
// the largest is taken. kRounds = 11 gives k = 2 and 98.8 %: one round that went wrong moves
// neither end. The intervals of two strategies that are equal then lie apart once in 2900 times
// (244 of the 705,432 orders of 11 and 11 rounds).
//
// What does not count. Other work only spoils a median if it hits many of the calls. So each sign
// of it is weighed by what it can do to that:
//
//   - the rounds differ by more than kMostSpread: whatever the cause
//   - a rank was taken off its processor in every fourth call or more often, and stood in the queue
//     for kMuchWaited of the time: calls that lie in one time slice cannot meet with many, calls
//     that are longer hold some each
//   - half of the calls took kMostOverMin times the quickest or longer: the rounds agree here if
//     each call is kept waiting, for a time slice say
//   - the figures are shaken (the rounds differ by kShaken, or the median is twice the quickest
//     call), and there is a cause: time waited or stolen, pinned ranks that moved, a clock that
//     changed, a rank's core that was shared now and then, or a p99 of kMostP99OverMin times the
//     quickest call. A p99 alone moves no median
//
// A core that is shared all the time (with what runs on its other hyper-thread: base/core_pace.h)
// makes short calls take up to twice as long. Such a row counts: the strategies of a size take
// turns. How much of the time it was so stands in each row, and is said.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/interference.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::bench {

inline constexpr int kRounds = 11;
/// Of fewer calls there is one round, no interval, and nothing is judged: five rounds cannot give
/// 95 %. It is the least k = 1 does.
inline constexpr int kFewestJudged = 6;

/// How many rounds so many calls are made in: with two of them in each, as far as that goes.
int rounds_of(int iterations);
/// Calls of the round-th of `rounds`: as equal as can be.
int calls_of_round(int iterations, int rounds, int round);

/// The interval above, of at least kFewestJudged medians; zeros of fewer.
std::pair<double, double> interval_of_median(std::vector<double> medians);

// Two tunes of one machine differ by a tenth, and models are off by some per cent: a median that
// may be half as much again is worth no more than its order of magnitude.
inline constexpr double kMostSpread = 1.5;
/// Where ranks take turns, a round has a few dozen time slices, and chance alone makes such ones.
inline constexpr double kMostSpreadInTurns = 3;
inline constexpr double kShaken = 1.15;
inline constexpr double kMostOverMin = 3;  ///< undisturbed rows have 1.1 to 1.6, over TCP up to 2.5
inline constexpr double kMostP99OverMin = 50;  ///< interrupts alone make a small call's 2 to 15
inline constexpr double kMuchClock = 1.1;
/// Of the time in which a rank's core was shared: what comes and goes shakes figures.
inline constexpr double kLeastShared = 0.05, kMostShared = 0.95;
/// Switches a second of a thread, where the kernel does not count how long they took: a busy loop
/// beside makes 100 to 300, a quiet system's own threads up to 30.
inline constexpr double kManySwitches = 60;

/// What was seen while a row's calls were timed.
struct RowSigns {
  std::vector<Interference> ranks;  ///< of each rank, over all rounds
  std::int64_t moves = 0;           ///< of pinned ranks, from one processor to another
  double clock = 1;  ///< the slowest CorePace::product over the quickest, of the worst rank
  std::vector<double> shared_cores{};  ///< CoreLooks::share() of each rank
  bool in_turns = false;  ///< ranks, and threads of their transport, outnumber the processors
};

/// Why the row does not count; "" if it does. Looks at its times and its interval, which must be
/// set.
std::string why_not(const Measurement& row, const RowSigns& signs);

/// "its rounds place the median only between 4.2 and 12345 us", of an interval that is too wide.
std::string too_wide(double low, double high, const char* unit);

/// Sets times, interval and rounds from the seconds of each round's calls, and whether it counts.
void judge(Measurement& row, std::span<const std::vector<double>> rounds, const RowSigns& signs);

/// Of two measurements of the same: one with wrong results, which no repetition takes back; else
/// one that counts, and of two that do or do not the quicker one, since other work only makes calls
/// longer.
bool is_to_keep(const Measurement& a, const Measurement& b);

}  // namespace ringlet::bench
