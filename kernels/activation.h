// What an operation applies to its result before it writes it.
#pragma once

#include <cstdint>

namespace ringlet {

enum class Activation : std::uint8_t { none, relu };

}  // namespace ringlet
