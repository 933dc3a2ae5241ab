#include "app/cli/before_meeting.h"

#include <cctype>
#include <exception>
#include <string_view>

#include "app/cli/error_exit.h"
#include "app/cli/processes.h"
#include "base/error.h"
#include "comm/processes/rendezvous.h"

namespace ringlet::app {

namespace {

/// Whether others wait for this process that do not end by themselves when it does.
bool is_awaited(const std::optional<comm::ProcessPosition>& position) {
  return position && position->processes > 1 && position->launcher != kOurselves;
}

/// Whether --processes stands there without a number.
bool takes_launchers_position(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--processes") continue;
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    return next.empty() || std::isdigit(static_cast<unsigned char>(next.front())) == 0;
  }
  return false;
}

}  // namespace

void end_before_meeting(const std::optional<comm::ProcessPosition>& position) {
  if (!is_awaited(position)) throw;
  int code = kFailed;
  try {
    throw;
  } catch (const UsageError&) {
    code = kUsage;
  } catch (...) {  // it has its message
  }
  const std::string why = message_of_current_exception();
  print_error(why);
  comm::tell_failure(*position, why);
  throw Told("this process", code);
}

void tell_others_of_command_line(int argc, const char* const* argv, const std::string& why) {
  if (!takes_launchers_position(argc, argv)) return;
  try {
    const auto position = comm::position_from_environment();
    if (is_awaited(position)) comm::tell_failure(*position, why);
  } catch (const ContractError&) {  // a position that cannot be: nobody waits at it
  }
}

}  // namespace ringlet::app
