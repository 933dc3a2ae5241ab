#include "app/cli/standard_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include "app/cli/error_exit.h"

namespace ringlet::app {

namespace {

/// Why standard output fails; `code` is 0 where the last attempt has not told.
std::string reason_of(int code) {
  if (code == 0 && ::write(STDOUT_FILENO, "", 0) < 0) code = errno;
  return code == 0 ? "an earlier write failed" : std::generic_category().message(code);
}

}  // namespace

void secure_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Open in the wrong direction: it holds the number, and using it fails as before. open() takes
    // the lowest number that is free, which is this one.
    const int direction = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    (void)::open("/dev/null", direction);
  }
}

bool output_failed() { return std::ferror(stdout) != 0; }

bool output_has_no_reader() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return output_failed() && ::poll(&output, 1, 0) == 1 &&
         (output.revents & (POLLERR | POLLHUP)) != 0;
}

int finish_output(int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if ((flushed && !output_failed()) || code != 0) return code;
  if (output_has_no_reader()) return kInterrupted + SIGPIPE;
  print_error(
      fmt::format("standard output cannot be written: {}; free some space there, or send it "
                  "elsewhere (> /dev/null)",
                  reason_of(flushed ? 0 : reason)));
  return kUnwritten;
}

}  // namespace ringlet::app
