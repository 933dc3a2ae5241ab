// The times of all calls of a row, by rank: `--raw`, and who was late.
#pragma once

#include <string>
#include <vector>

#include "bench/all_reduce/measurement.h"

namespace ringlet::bench {

/// All calls of one row. The same number of each rank.
struct Samples {
  std::vector<int> ranks;                    ///< their numbers in the world
  std::vector<std::vector<double>> seconds;  ///< of each of them, of each call
  std::vector<int> calls_of_rounds;
};

/// Sets measurement.by_rank. `seconds`: of each rank, of each call.
void set_ranks(Measurement& measurement, const std::vector<std::vector<double>>& seconds);

/// A rank is late in a row where it is the last to end in most of the calls, and takes longer than
/// the others in the median: by kLate.
inline constexpr double kLate = 1.1;
inline constexpr double kMostCalls = 0.75;
/// "rank 3 is late: the last of 4 in 93 % of the calls, 1.31 times the others' time (median of 12
/// of 14 rows)", where one rank is so in three quarters of the rows that count, and of three at
/// least; else "". Of all ranks, in collectives without a root, in which they do alike.
std::string late_text(const std::vector<Measurement>& measurements);

/// A line of comma-separated values for each call of each rank of the rows that keep samples.
inline constexpr const char* kRawHeading =
    "collective,ranks,machines,level,type,op,in_place,bytes,strategy,rank,round,iteration,us\n";
std::string raw_lines(const std::vector<Measurement>& measurements);

}  // namespace ringlet::bench
