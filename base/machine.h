// Which machine this process runs on.
#pragma once

#include <string>

namespace ringlet {

/// The same text in two processes where these reach each other's abstract sockets: on one kernel
/// (its boot id) and in one network namespace. Anything else is another machine, a container with a
/// network of its own too.
std::string this_machine();

/// What the kernel calls its time since the last start; empty where it cannot be asked.
std::string boot_id();

/// The machine's name, for messages.
std::string host_name();

/// What the linker has marked this program with; empty where it has not. Two builds of the same
/// sources with the same options have the same.
std::string build_id();

}  // namespace ringlet
