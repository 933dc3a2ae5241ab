// Makes one timeline of those that the processes of a run wrote (trace_writer.h), on the clock of
// process 0. A line at a time: a trace of a long run is too large to be held as a whole. Of
// messages ids and times are held, for which the files are read twice.
//
// A process has read process 0's clock as its run began and as it ended. In between its clock is
// taken to go evenly beside that one. Where the clocks put a message's arrival before its
// departure, the receiver's whole timeline is moved behind it. A message of which only one end is
// there, as of a run that failed, has no arrow.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringlet::train {

/// A process whose timeline is a part of the whole. Its clock is that of process 0 plus `behind_us`
/// at the begin, and goes `drift_ppm` millionths too slowly.
struct MergedTrace {
  int process = 0, processes = 1;  ///< of so many in the run
  std::string host;
  double behind_us = 0;
  double within_us = 0;  ///< behind_us is at most so wrong, either way
  double drift_ppm = 0;
};

/// Reads `files` and writes `out`; the result is in the order of processes. Throws FileError naming
/// the file and its line: not there, not written by a TraceWriter, damaged; and both files where
/// two are of two runs, or of one process. Some of a run's may be left out.
std::vector<MergedTrace> merge_traces(const std::vector<std::filesystem::path>& files,
                                      const std::filesystem::path& out);

}  // namespace ringlet::train
