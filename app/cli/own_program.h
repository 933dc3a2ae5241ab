// This program's own file, and children that run it.
#pragma once

#include <sys/types.h>

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace ringlet::app {

/// This program's file. Where /proc is not mounted, the name under which it was started.
std::string own_program();

/// This program once more, with other words, in a process and a process group of its own: a signal
/// of the terminal does not reach it, so who started it decides what it hears. It ends with its
/// parent.
class ChildProgram {
 public:
  /// `words` go behind the program's name; `variables`, as "RINGLET_LR=0.1", are set beside those
  /// of this process. What it prints goes into the file `output`. Throws Error where no process can
  /// be had.
  ChildProgram(const std::vector<std::string>& words, const std::vector<std::string>& variables,
               const Descriptor& output);
  /// Kills it where it still runs.
  ~ChildProgram();
  ChildProgram(ChildProgram&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  ChildProgram& operator=(ChildProgram&& other) = delete;

  /// Its exit code where it has ended, 128 + N where signal N ended it; nothing while it runs.
  std::optional<int> ended();
  /// It hears it also where it is stopped (SIGSTOP).
  void send(int signal) const;

 private:
  pid_t pid_ = -1;  // -1: it has ended
};

/// The text of the last line "ringlet: error: TEXT" in what a child has printed; empty: none.
std::string error_in(std::istream& printed);

}  // namespace ringlet::app
