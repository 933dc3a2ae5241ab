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
bool is_awaited(const std::optional<comm::ProcessPlace>& place) {
  return place && place->processes > 1 && place->launcher != kOurselves;
}

/// Whether --processes stands there without a number.
bool takes_launchers_place(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--processes") continue;
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    return next.empty() || std::isdigit(static_cast<unsigned char>(next.front())) == 0;
  }
  return false;
}

}  // namespace

void end_before_meeting(const std::optional<comm::ProcessPlace>& place) {
  if (!is_awaited(place)) throw;
  int code = kFailed;
  try {
    throw;
  } catch (const UsageError&) {
    code = kUsage;
  } catch (...) {  // it has its message
  }
  const std::string why = message_of_current_exception();
  print_error(why);
  comm::tell_failure(*place, why);
  throw Told("this process", code);
}

void tell_others_of_command_line(int argc, const char* const* argv, const std::string& why) {
  if (!takes_launchers_place(argc, argv)) return;
  try {
    const auto place = comm::place_from_environment();
    if (is_awaited(place)) comm::tell_failure(*place, why);
  } catch (const ContractError&) {  // a place that cannot be: nobody waits at it
  }
}

}  // namespace ringlet::app
