#include "app/cli/error_exit.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "app/cli/family_board.h"
#include "base/one_line.h"

/// The leak sanitizer's look, which it takes at a usual exit. Null in a build without it.
extern "C" [[gnu::weak]] void __lsan_do_leak_check();  // NOLINT(bugprone-reserved-identifier)

namespace ringlet::app {

namespace {

void write_error(const std::string& message) {
  if (!may_tell_error()) return;
  std::fprintf(stderr, "ringlet: error: %s\n", on_one_line(message).c_str());
}

}  // namespace

void print_error(const std::string& message) {
  std::fflush(stdout);  // whoever has both in one file reads them in order
  write_error(message);
}

void print_warning(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "ringlet: warning: %s\n", on_one_line(message).c_str());
}

void end_process(int code) {
  std::fflush(nullptr);
  if (__lsan_do_leak_check != nullptr) __lsan_do_leak_check();
  std::_Exit(code);
}

void end_despite_running_threads(const std::string& message) {
  if (isatty(STDERR_FILENO) != 0) std::fputc('\n', stderr);  // a line of progress may stand there
  write_error(message);  // a thread may hang with standard output in its hands
  std::fflush(stderr);
  std::_Exit(kFailed);
}

}  // namespace ringlet::app
