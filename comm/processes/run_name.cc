#include "comm/processes/run_name.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <optional>

#include "comm/processes/secret.h"
#include "comm/processes/tcp_address.h"

namespace ringlet::comm {

namespace {

/// One name for all addresses of the loopback: a process at any of them is on this machine.
std::string value_in_name(const std::string& variable, const std::string& value) {
  return variable == "MASTER_ADDR" && is_loopback(value) ? "loopback" : value;
}

/// The process that made the socket; 0 where the number is no such socket's, or the process is in
/// another PID namespace. A launcher in between may have closed it.
pid_t maker_of_socket(int descriptor) {
  int family = 0;
  socklen_t length = sizeof family;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0 || family != AF_UNIX) {
    return 0;
  }
  ucred peer{};
  length = sizeof peer;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

/// What only processes of one machine have in common.
std::string local_part(const Environment& environment, const RunVariables& variables) {
  std::string part;
  for (const std::string& name : variables.local) {
    if (const auto value = short_value(environment, name); !value.empty()) {
      part += fmt::format(" {}={}", name, value);
    }
  }
  if (const auto secret = environment.text(variables.secret)) {
    part += " secret " + fingerprint(*secret);
  }
  const auto socket =
      environment.text(variables.socket) ? environment.number(variables.socket) : std::nullopt;
  const pid_t maker = socket ? maker_of_socket(*socket) : 0;
  if (maker > 0) part += fmt::format(" started by process {}", maker);
  return part;
}

}  // namespace

std::string short_value(const Environment& environment, const std::string& name) {
  std::string value = environment.text(name).value_or("");
  if (value.size() <= kLongestName) return value;
  throw ContractError(fmt::format("{} has {} bytes, and {} are the most; give it a shorter value",
                                  name, value.size(), kLongestName));
}

std::string run_name(const Environment& environment, const std::string& launcher,
                     const RunVariables& variables, const std::string& beside, bool over_tcp) {
  std::string run = launcher;
  for (const std::string& name : variables.required) {
    const std::string value = short_value(environment, name);
    if (value.empty()) {
      throw ContractError(fmt::format(
          "{} are set but {} is not; all processes of a run need the same one", beside, name));
    }
    if (over_tcp && name == "MASTER_ADDR") continue;
    run += fmt::format(" {}={}", name, value_in_name(name, value));
  }
  std::vector<std::string> optional = variables.optional;
  if (launcher != "ringlet") optional.emplace_back("RINGLET_RUN");
  for (const std::string& name : optional) {
    if (const std::string value = short_value(environment, name); !value.empty()) {
      run += fmt::format(" {}={}", name, value);
    }
  }
  return over_tcp ? run : run + local_part(environment, variables);
}

}  // namespace ringlet::comm
