// Hello: what a process says of itself when it comes to the hub. Site: what all know of it then.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "comm/processes/message.h"
#include "comm/processes/plan_check.h"

namespace ringlet::comm {

/// Counts up whenever what is said over TCP changes. Programs that differ in it say so, and no
/// more.
inline constexpr const char* kProtocol = "3";

struct Hello {
  int process = -1;
  int replicas = 0;
  pid_t pid = 0;
  std::string machine;  ///< this_machine()
  std::string host;     ///< the machine's name
  std::string address;  ///< of its machine, as its connection to the hub has it; in numbers
  std::string run;      ///< ProcessPosition::run
  std::string nonce;    ///< random, over TCP: the hub proves with it that it knows the token
  std::string protocol = kProtocol;  ///< how this program speaks over TCP
  std::string failure{};             ///< why it cannot take part; empty where it can
  Plan agreed{};                     ///< what all must agree on
};

Message to_message(const Hello& hello);
/// What is missing in the message is empty, or 0.
Hello hello_of(const Message& message);

/// A process and where it runs.
struct Site {
  int machine = 0;  ///< machines are numbered from 0 on, in the order of their first processes
  pid_t pid = 0;
  std::string host;     ///< the machine's name, for messages
  std::string address;  ///< of its machine, where other machines reach it; in numbers
};

/// The table of all processes, in their order, as a text and back. A text that breaks off gives
/// fewer.
std::string table_of(const std::vector<Site>& sites);
std::vector<Site> sites_of(const std::string& text);

}  // namespace ringlet::comm
