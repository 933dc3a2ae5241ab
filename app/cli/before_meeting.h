// What fails in a process before it has met the others of its run: a flag, a configuration, a
// device. Nobody knows of it yet, and the others would wait for it until their time is up.
#pragma once

#include <optional>
#include <string>

#include "comm/processes/launch.h"

namespace ringlet::app {

/// Ends a process that has failed before it has met the others: prints the current exception, and
/// tells the others why they end too. Throws Told. Where no others wait, or who started them ends
/// them itself, it rethrows the exception instead.
[[noreturn]] void end_before_meeting(const std::optional<comm::ProcessPosition>& position);

/// The result of `work`, which the process at `position` does before it meets the others.
template <class Work>
auto before_meeting(const std::optional<comm::ProcessPosition>& position, Work work) {
  try {
    return work();
  } catch (...) {
    end_before_meeting(position);
  }
}

/// The same for a command line that cannot be read, and whose error has been printed. It may still
/// say that others wait (--processes).
void tell_others_of_command_line(int argc, const char* const* argv, const std::string& why);

}  // namespace ringlet::app
