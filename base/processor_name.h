// What the processor calls itself.
#pragma once

#include <iosfwd>
#include <string>

namespace ringlet {

/// "AMD EPYC 9554 64-Core Processor", of the first one. An ARM has no name, but numbers of its
/// maker and of its core: "ARM 0x41-0xd0c". "processor" where the system does not tell.
std::string processor_name();

/// The same, of what /proc/cpuinfo says.
std::string processor_name_in(std::istream& cpuinfo);

}  // namespace ringlet
