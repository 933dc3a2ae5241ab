#include "base/instruction_set.h"

#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace ringlet {

const char* name_of(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::portable:
      return "portable";
    case InstructionSet::neon:
      return "neon";
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
  return kArm ? InstructionSet::neon : InstructionSet::portable;  // every aarch64 has it
}

const char* name_of(Bf16Products products) {
  switch (products) {
    case Bf16Products::none:
      return "none";
    case Bf16Products::vectors:
      return "avx512-bf16";
    case Bf16Products::tiles:
      return "amx";
    case Bf16Products::automatic:
      return "automatic";
  }
  return "?";
}

namespace {

/// Linux gives AMX's registers to processes that ask for them, once and for all of their threads.
[[maybe_unused]] bool may_use_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  // Clang's __builtin_cpu_supports knows neither of the two.
  constexpr unsigned kBf16 = 1U << 22U, kTile = 1U << 24U, kBoth = kBf16 | kTile;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kBoth) != kBoth) return false;
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

Bf16Products detect_bf16_products(InstructionSet isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16")) {
    static const bool tiles = may_use_tiles();
    return tiles ? Bf16Products::tiles : Bf16Products::vectors;
  }
#endif
  static_cast<void>(isa);
  return Bf16Products::none;
}

InstructionSet detect_instruction_set() {
  const InstructionSet best = widest_instruction_set();
  const char* wish = std::getenv("RINGLET_ISA");  // NOLINT(concurrency-mt-unsafe): never written
  if (wish == nullptr || *wish == '\0') return best;
  std::string names;
  for (const auto isa : kInstructionSets) {
    names += std::string(names.empty() ? "" : ", ") + name_of(isa);
    if (std::string(wish) != name_of(isa)) continue;
    if (isa <= best) return isa;
    throw DeviceError(std::string("RINGLET_ISA=") + wish +
                      ": this processor has no such instructions; the widest it has is " +
                      name_of(best));
  }
  throw DeviceError(std::string("RINGLET_ISA=") + wish + " is not one of " + names);
}

}  // namespace ringlet
