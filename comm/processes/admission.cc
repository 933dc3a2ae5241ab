#include "comm/processes/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace ringlet::comm {

namespace {

/// "process 1", over several machines "process 1 on b".
std::string name_of_process(const Hello& hello, bool with_host) {
  return fmt::format("process {}{}", hello.process, with_host ? " on " + hello.host : "");
}

/// The first entry in which `other` differs from process 0, in words; empty if none does.
std::string difference(const Hello& first, const Hello& other, bool with_hosts) {
  for (std::size_t i = 0; i < std::min(first.agreed.size(), other.agreed.size()); ++i) {
    if (first.agreed[i] == other.agreed[i]) continue;
    return fmt::format(
        "the processes do not agree on {}: {} has {}, {} has {}; start all with the same flags",
        first.agreed[i].first, name_of_process(first, with_hosts), first.agreed[i].second,
        name_of_process(other, with_hosts), other.agreed[i].second);
  }
  return "";
}

/// Takes as long for any `theirs` of the same length, so that no stranger learns by the clock how
/// much of it is right.
bool is_token(const std::string& ours, const std::string& theirs) {
  unsigned differs = ours.size() == theirs.size() ? 0 : 1;
  for (std::size_t i = 0; i < theirs.size() && i < ours.size(); ++i) {
    differs |= static_cast<unsigned>(ours[i] ^ theirs[i]);
  }
  return differs == 0;
}

}  // namespace

std::string why_refused(const Hello& comer, const HubOptions& hub) {
  if (!is_token(hub.token, comer.token)) {
    return fmt::format(
        "{} has another RINGLET_TOKEN than process 0 at {}; give all processes of a run the same "
        "one",
        name_of_process(comer, true), hub.address);
  }
  if (comer.run == hub.run) return "";
  return fmt::format(
      "{} is of another run ({}) than process 0 at {} ({}); give each run a port of its own",
      name_of_process(comer, true), comer.run, hub.address, hub.run);
}

std::string why_not_one_run(const Hello& known, const Hello& comer, bool with_hosts) {
  if (known.process == comer.process) {
    const auto pid_of = [with_hosts](const Hello& hello) {
      return fmt::format("{}{}", hello.pid, with_hosts ? " on " + hello.host : "");
    };
    return fmt::format(
        "two processes say that they are process {} (pids {} and {}); each needs a RANK of its own",
        comer.process, pid_of(known), pid_of(comer));
  }
  if (known.process == 0) return difference(known, comer, with_hosts);
  if (comer.process == 0) return difference(comer, known, with_hosts);
  return "";  // the two are compared with process 0 instead
}

}  // namespace ringlet::comm
