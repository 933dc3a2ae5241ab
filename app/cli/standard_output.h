// Standard output, and how a command ends that could not write to it.
//
//   a full disk, or closed from the start    the work is done all the same, then: kUnwritten
//   its reader has gone (ringlet ... | head)   as if SIGPIPE had ended it: kInterrupted + SIGPIPE
//
// SIGPIPE itself is ignored: a write fails instead of the process. A process that has just died
// may be written to as well (Gloo), and that has to be an error that is reported.
#pragma once

#include <system_error>

namespace ringlet::app {

/// To be called before any file is opened. What is closed of the descriptors 0, 1 and 2 is opened
/// on /dev/null, so that no file gets its number and what is printed. Printing to one that was
/// closed still fails.
void secure_standard_streams();

/// Runs `print`, which prints. What cannot be printed is lost, and finish_output() tells of it.
template <class Print>
void print_if_possible(const Print& print) {
  try {
    print();
  } catch (const std::system_error&) {  // fmt's; the stream notes it too
  }
}

/// Whether something could not be printed so far. Any thread.
bool output_failed();
/// Whether that was so because nobody is left to read it. Any thread.
bool output_has_no_reader();

/// To be called last, with the exit code so far. Writes out what was printed. Returns `code`;
/// instead of 0 the code of the table above where something was lost.
int finish_output(int code);

}  // namespace ringlet::app
