// The function that an operation applies to its result before writing it.
#pragma once

#include <cstdint>

namespace ringlet {

enum class Activation : std::uint8_t { none, relu };

}  // namespace ringlet
