// Measurement: the time of one collective of one size. It is a row of the benchmark's table, an
// object of its JSON, a line of its CSV. Other engines' programs write the same objects, one a
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringlet::bench {

/// A larger file of rows is refused before it is read.
inline constexpr std::uintmax_t kMostRowsBytes = std::uintmax_t{64} << 20;

/// Instead of an operation, of a collective that only moves elements; instead of a root, of one
/// that has none.
inline constexpr const char* kNoOperation = "none";
inline constexpr int kNoRoot = -1;

struct Samples;  // samples.h

/// What a row says of one of its ranks.
struct RankTime {
  double median_us = 0, mean_us = 0;  ///< of its own part of the calls
  double last = 0;                    ///< the share of the calls in which it was the last to end
};

struct Measurement {
  std::string engine = "ringlet";
  std::string collective = "all-reduce";  ///< a name of collective.h
  std::string ranks_as = "threads";       ///< or "processes"
  std::string transport = "local";
  std::string strategy;
  int ranks = 0;
  int machines = 1;           ///< that the ranks are on
  std::string level = "all";  ///< on several machines also "inside" one, and "between" them
  std::int64_t bytes = 0;     ///< the size (collective.h)
  std::int64_t count = 0;     ///< elements: all, or those of a part
  std::string type = "f32";
  std::string op = "sum";
  int root = kNoRoot;
  bool in_place = true;
  bool pinned = false;          ///< each rank to a processor of its own
  std::int64_t iterations = 0;  ///< timed
  // Times of a call, which takes as long as its slowest rank.
  double median_us = 0;  ///< p50
  double min_us = 0;
  double p99_us = 0;
  double mean_us = 0;  ///< 0: not known, of older files
  double p90_us = 0;   ///< likewise
  /// Where the median is with 95 % certainty or more, by the medians of the rounds (judgement.h);
  /// 0: not known.
  double low_us = 0, high_us = 0;
  int rounds = 0;         ///< between which the other strategies had their turns; 0: not known
  bool counts = true;     ///< false: it tells of something else than of the collective
  std::string why_not{};  ///< it does not count
  /// CoreLooks::share() of the rank with the largest (base/core_pace.h); below 0: not known.
  double shared_core = -1;
  bool checked = true;
  std::int64_t wrong = 0;             ///< elements, over all ranks and compared iterations
  std::vector<std::string> hashes{};  ///< of each rank's last result
  std::vector<RankTime> by_rank{};    ///< of each rank; empty: not known
  /// In words, where rows of unlike machines are shown together; else empty. It is in no file.
  std::string machine{};
  std::shared_ptr<const Samples> samples{};  ///< of all calls, where they are kept

  /// Bytes / median, in GB/s (1e9).
  double algbw_gbs() const;
  /// algbw times the collective's factor (collective.h), of all-reduce 2 (p-1)/p: the bytes a
  /// second that each rank has to send and receive at least, whatever p is.
  double busbw_gbs() const;
  bool ranks_differ() const;
  bool has_interval() const { return low_us > 0; }
  /// Whether every rank got the exact result, as far as results were compared.
  bool right() const { return wrong == 0 && !ranks_differ(); }
  /// Whether its time may decide anything: which is the fastest, a model, a regret.
  bool decides() const { return counts && right(); }
};

/// Sets median, min, mean, p90 and p99 from the seconds of each call; at least one.
void set_times(Measurement& measurement, std::vector<double> seconds);

nlohmann::json to_json(const Measurement& measurement);
/// "shared_core" of a row, or of `bench train`; below 0 where there is none. Throws
/// std::runtime_error naming the field.
double shared_core_in(const nlohmann::json& object);
/// Reads a file that --json wrote (an object with "rows"), or another engine's program (an object a
/// line). Throws FileError naming the file, and the row and field that are wrong.
std::vector<Measurement> read_measurements(const std::filesystem::path& file);

/// "the machine was busy: 31 of 120 rows do not count"; "" where all do.
std::string not_counting(const std::vector<Measurement>& measurements);

/// "the ranks' cores were shared for 83 % of the time ..." (shared_core_words()); "" where that was
/// a tenth or less, or nobody looked.
std::string on_shared_cores(const std::vector<Measurement>& measurements);
/// The share that it tells of, the mean of the rows that know theirs; below 0: none does.
double mean_shared_core(const std::vector<Measurement>& measurements);

/// A heading and a line for each, as comma-separated values.
std::string to_csv(const std::vector<Measurement>& measurements);

/// The table's heading, and a row of it; each ends its line. A row that does not count says why at
/// its end, and one whose ranks differ has a second line, of their hashes. `width`: of the
/// strategy's column.
inline constexpr int kStrategyWidth = 16;
std::string table_heading(int width = kStrategyWidth);
std::string table_row(const Measurement& measurement, int width = kStrategyWidth);

}  // namespace ringlet::bench
