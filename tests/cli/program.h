// The built program as a child process: the command line of a user, and the outcome.
//
//   const Outcome outcome = ringlet({"train", "--epochs", "1"});
//   Program program({"train", ...}, {.terminal = true});  program.wait_for("epoch");  ...
//
// The program's path comes from CMake. Every wait has a limit: a program that hangs is killed, and
// the test fails.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace ringlet::testing {

using Arguments = std::vector<std::string>;

/// How a program ended and what it said.
struct Outcome {
  int code = -1;   ///< exit code; -1: ended by a signal
  int signal = 0;  ///< that ended it, or 0
  bool timed_out = false;
  std::string out;
  std::string err;  ///< empty on a terminal, where both go to `out`
};

struct ProgramOptions {
  bool terminal = false;          ///< on a pseudo-terminal instead of pipes
  int columns = 100;              ///< of that terminal
  long file_size_limit = -1;      ///< RLIMIT_FSIZE in bytes; -1: none
  long address_space_limit = -1;  ///< RLIMIT_AS in bytes; -1: none
  /// Added to the test's own, and to RINGLET_NO_OUT=1: runs without --out leave no folder.
  std::map<std::string, std::string> environment{};
  std::string folder{};  ///< where it runs; empty: where the test does
};

struct ShellLine {
  std::string text;
};

/// A running program. Not thread-safe. Killed, if it still runs, when the object goes.
class Program {
 public:
  explicit Program(const Arguments& arguments, const ProgramOptions& options = {});
  /// What a shell makes of `line`, for launchers that are not ours.
  explicit Program(const ShellLine& line);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Reads until the output so far holds `text`; false when the program ended or the time passed.
  bool wait_for(const std::string& text, double seconds = 60);
  /// The same until `done` holds of the output.
  bool wait_until(const std::function<bool(const std::string& out)>& done, double seconds = 60);
  void send(int signal) const;
  /// Gives the terminal another width.
  void resize(int columns) const;
  pid_t pid() const { return pid_; }
  /// Reads until the end. A program that is not done by then is killed and marked.
  Outcome wait(double seconds = 60);

 private:
  void read_some(int timeout_ms);
  bool reading() const { return out_ >= 0 || err_ >= 0; }
  void start_with_pipes(const std::string& program, const Arguments& arguments,
                        const ProgramOptions& options);
  void start_on_terminal(const Arguments& arguments, const ProgramOptions& options);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

/// The processes that `parent` has started and that it still has.
std::vector<pid_t> children_of(pid_t parent);

/// Runs the program to its end.
Outcome ringlet(const Arguments& arguments, const ProgramOptions& options = {});

/// The commands that the program lists, with those below others: {"bench"}, {"bench", "train"}.
const std::vector<Arguments>& all_commands();

/// `base` and then `more`.
Arguments operator+(Arguments base, const Arguments& more);

/// A run of less than a second: the mlp on drawn garments, one epoch of four steps. `changes` are
/// flags to add; where one is among the run's own, its value is replaced.
Arguments quick_train(const Arguments& changes = {});

/// The program ended with `code`, printed nothing but one line "ringlet: error: ..." that holds
/// each of the parts on stderr, and took no time-out.
::testing::AssertionResult fails_with(int code, const Outcome& outcome,
                                      std::initializer_list<std::string> parts);
/// The program ended with 0 and nothing on stderr.
::testing::AssertionResult succeeds(const Outcome& outcome);
/// `text` holds each of the parts.
::testing::AssertionResult holds(const std::string& text, std::initializer_list<std::string> parts);

}  // namespace ringlet::testing
