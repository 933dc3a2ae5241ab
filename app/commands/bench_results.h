// What `ringlet bench all-reduce` and its like give: words for people, and files for programs.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/all_reduce_bench_flags.h"
#include "app/report/all_reduce_page.h"
#include "base/error.h"
#include "bench/all_reduce/core_distance.h"
#include "bench/all_reduce/machine.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::app {

/// Where words for people go: standard output; standard error where that has the figures; nowhere
/// where it has them in another program's format.
class People {
 public:
  explicit People(const AllReduceFlags& flags)
      : is_foreign_(flags.format != BenchFormat::table),
        file_(flags.csv_to_output() ? stderr : stdout) {}

  template <class... Values>
  void say(fmt::format_string<Values...> format, Values&&... values) const {
    if (!is_foreign_) fmt::print(file_, format, std::forward<Values>(values)...);
  }
  /// A line that stands first, and in other formats as well: as a comment.
  void announce(const std::string& line) const {
    fmt::print(file_, "{}{}\n", is_foreign_ ? "# " : "", line);
    flush();
  }
  void flush() const { std::fflush(file_); }

 private:
  bool is_foreign_;
  std::FILE* file_;
};

/// What all blocks together gave.
struct BenchOutcome {
  std::vector<bench::Measurement> rows{};
  std::vector<bench::CoreDistance> distances{};
  std::string raw{};  ///< bench::raw_lines() of the rows
};

/// Rows of the files of --with. Where they, or what is measured here, are of unlike machines, each
/// row says of which.
struct OtherRows {
  std::vector<bench::Measurement> rows{};
  std::vector<report::RowsOrigin> origins{};  ///< of each file
  std::string own_machine{};  ///< of what is measured here, where machines are unlike; else empty
};
OtherRows read_others(const AllReduceFlags& flags);

/// Fails before the measurement where its results could not be written after it, or would replace
/// what they should not. `processes`: how many write a trace.
void check_bench_outputs(const AllReduceFlags& flags, const CLI::App& command, int processes);

void write_bench_outputs(const AllReduceFlags& flags, const BenchOutcome& outcome,
                         const OtherRows& others, std::optional<bench::MachineRecord> machine);

/// Throws where some rank got another result than the exact one, or than its peers.
void require_right(const std::vector<bench::Measurement>& rows);

/// The file that the first of the processes that this one starts leaves what it measured in. It
/// lives as long as the object.
class RowsFile {
 public:
  RowsFile();
  ~RowsFile();
  RowsFile(const RowsFile&) = delete;
  RowsFile& operator=(const RowsFile&) = delete;

  /// In that process: the file's name; nothing in any other one.
  static std::optional<std::string> given();
  static void write(const std::string& name, const BenchOutcome& outcome);

  void add_to(BenchOutcome& outcome) const;

 private:
  std::string name_;
};

}  // namespace ringlet::app
