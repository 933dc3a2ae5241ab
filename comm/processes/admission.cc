#include "comm/processes/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "comm/processes/secret.h"

namespace ringlet::comm {

namespace {

/// What a stranger may have said, as it is shown: no more than a line.
std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 300;
  std::string line = text.substr(0, kMost);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return text.size() > kMost ? line + " ..." : line;
}

/// "process 1", over several machines "process 1 on b".
std::string name_of_process(const Hello& hello, bool with_host) {
  return fmt::format("process {}{}", hello.process, with_host ? " on " + shown(hello.host) : "");
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

/// Both sides speak of this meeting alone: no proof serves at another one.
std::string proof_of(const char* whose, const std::string& token, const Message& hello,
                     const std::string& challenge) {
  return hexadecimal(
      proof(token, fmt::format("ringlet {} {} ", whose, challenge) + bytes_of(hello)));
}

}  // namespace

std::string comers_proof(const std::string& token, const Message& hello,
                         const std::string& challenge) {
  return proof_of("comer", token, hello, challenge);
}

std::string hubs_proof(const std::string& token, const Message& hello,
                       const std::string& challenge) {
  return proof_of("hub", token, hello, challenge);
}

std::string why_it_cannot_begin(const Hello& comer, bool with_host) {
  return fmt::format("{} (pid {}) cannot begin: {}", name_of_process(comer, with_host), comer.pid,
                     comer.failure);
}

std::string why_of_another_version(const Hello& comer, const HubOptions& hub) {
  if (comer.protocol == kProtocol) return "";
  return fmt::format(
      "{} is of another version of Ringlet than process 0 at {}; copy one build to all machines",
      name_of_process(comer, true), hub.address);
}

std::string why_of_another_run(const Hello& comer, const HubOptions& hub) {
  if (comer.run == hub.run) return "";
  return fmt::format(
      "{} is of another run ({}) than process 0 at {} ({}); give each run a port of its own",
      name_of_process(comer, true), shown(comer.run), hub.address, hub.run);
}

std::string why_without_token(const Hello& comer, const HubOptions& hub) {
  return fmt::format(
      "{} has another RINGLET_TOKEN than process 0 at {}; give all processes of a run the same one",
      name_of_process(comer, true), hub.address);
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
