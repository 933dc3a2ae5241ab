// Rows in the columns of nccl-tests and of OSU's micro-benchmarks, for scripts that read those.
//
// nccl-tests: lines that begin with # tell, others are rows of 13 words:
//   size count type redop root
//   out of place: time algbw busbw #wrong
//   in place: the same four
// and at the end "# Out of bounds values : 0 OK" and "# Avg bus bandwidth    : 12.3". Its time is
// a mean; here it is the median, as everywhere in Ringlet.
//
// OSU: lines that begin with # tell, others are rows: size, mean time; and where all is asked for
// least and most time over the ranks, and calls. Each rank's time is the mean of its own.
#pragma once

#include <string>
#include <vector>

#include "bench/all_reduce/measurement.h"

namespace ringlet::bench {

/// What the head of nccl-tests' output says beside the rows.
struct NcclHead {
  std::string step;  ///< "2(factor)", "1024(bytes)"; empty: as the rows' sizes are
  int warm_up = 5;
  std::string device = "cpu";
};

/// A head, rows and an end for each number of ranks, level and strategy. Where only one of in place
/// and out of place was measured, the other's columns are N/A.
std::string nccl_text(const std::vector<Measurement>& rows, const NcclHead& head);

/// A head and rows for each of them. `all`: with least, most and calls.
std::string osu_text(const std::vector<Measurement>& rows, bool all);

}  // namespace ringlet::bench
