// What the processor calls itself.
#pragma once

#include <string>

namespace ringlet {

/// "AMD EPYC 9554 64-Core Processor", of the first one; "processor" where the system does not tell.
std::string processor_name();

}  // namespace ringlet
