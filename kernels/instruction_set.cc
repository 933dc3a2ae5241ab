#include "kernels/instruction_set.h"

#include <cstdlib>
#include <string>

#include "kernels/error.h"

namespace ringlet {

const char* name_of(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::portable:
      return "portable";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::automatic:
      return "automatic";
  }
  return "?";
}

InstructionSet widest_instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return InstructionSet::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
  return InstructionSet::portable;
}

InstructionSet detect_instruction_set() {
  const InstructionSet best = widest_instruction_set();
  const char* wish = std::getenv("RINGLET_ISA");  // NOLINT(concurrency-mt-unsafe): never written
  if (wish == nullptr || *wish == '\0') return best;
  for (const auto isa : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512}) {
    if (std::string(wish) != name_of(isa)) continue;
    if (isa <= best) return isa;
    throw DeviceError(std::string("RINGLET_ISA=") + wish +
                      ": this processor has no such instructions; the widest it has is " +
                      name_of(best));
  }
  throw DeviceError(std::string("RINGLET_ISA=") + wish + " is not one of portable, avx2, avx512");
}

}  // namespace ringlet
