// A learner's code runs in a process of its own, with limits of time and memory. So a crash, an
// exit and a loop without end are verdicts like others, and nothing is left running.
//
// The child tells what it does on a board, which is memory of both. It ends with the first finding.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "learn/check/verdict.h"

namespace ringlet::learn {

/// Times are of the processor, or of sleep: so a busy machine changes no verdict.
struct Limits {
  double still_busy_s = 2, still_asleep_s = 5;  ///< without any progress
  double all_busy_s = 12, all_asleep_s = 8;     ///< in all: of both, parts that add up to a whole
  double all_s = 300;                           ///< by the clock, whatever it does
  std::int64_t memory = std::int64_t{1} << 30;  ///< bytes beyond what the checker has
};

/// In memory that the parent and the child have.
class Board {
 public:
  /// From here on the child runs this.
  void begin(char layer, const Case& at);
  /// The case goes on in another layer.
  void enter(char layer) { layer_ = layer; }
  /// The rank goes on, and has had so many exchanges; -1: ranks run side by side.
  void note(int rank, int exchanges);
  /// What runs now is the checker's own, and may take its time.
  void work_alone(bool alone) { is_alone_ = alone; }
  /// Ends the child with this finding about the case that was begun. Any thread.
  [[noreturn]] void conclude(Verdict verdict, const std::string& words);
  /// Ends it without fault.
  [[noreturn]] void pass(const Case& at, const std::optional<Costs>& costs,
                         const std::string& words);

  /// Where the child is, for the words of a crash: "p = 2, n = 1, sum: rank 0, after 3 exchanges,"
  std::string where() const;

 private:
  friend Finding in_child(const Limits&, const std::function<void(Board&)>&, std::string*);
  [[noreturn]] void end(Verdict verdict, const std::string& words);

  static constexpr std::size_t kWords = 4096;
  std::atomic<std::int64_t> progress_{0};
  std::atomic<bool> is_alone_{false};
  std::atomic<bool> has_concluded_{false};
  std::atomic<bool> is_whole_{false};  // what was concluded is all there
  pid_t child_ = 0;
  char layer_ = ' ';
  Case at_{};
  int rank_ = -1;
  int exchanges_ = 0;
  Verdict verdict_ = Verdict::passed;
  bool has_costs_ = false;
  Costs costs_{};
  char words_[kWords] = {};
};

/// What the child found that runs `work`, which concludes. `printed`: what it wrote to its standard
/// outputs in its last case. Throws Interrupted on SIGINT and SIGTERM, std::system_error where
/// there can be no child.
Finding in_child(const Limits& limits, const std::function<void(Board&)>& work,
                 std::string* printed);

struct Interrupted {};

/// In the child, which may write as little as a file should print: from here on it may write files.
void let_write();

}  // namespace ringlet::learn
