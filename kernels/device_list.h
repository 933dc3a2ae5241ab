// The devices that this build has implementations for.
#pragma once

#include "kernels/cpu/cpu_device.h"

namespace ringlet {

template <class... Types>
struct TypeList {};

using ConcreteStreams = TypeList<CpuStream>;

}  // namespace ringlet
