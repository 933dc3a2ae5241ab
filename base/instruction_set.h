// The widest vector instructions that code on the CPU may use, and the choice among its versions.
//
// A version is compiled with its set's options, as cmake/RingletInstructionSets.cmake has them, and
// takes its set's tag, so that versions are overloads:
//
//   FloorLoops floor_loops_of(Avx2Set);
//   for_instruction_set(isa, [](auto set) { return floor_loops_of(set); })
//
// Versions include this header, so it has no function of its own: only declarations, and a template
// that they do not call.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ringlet {

/// `automatic`: what this processor has, or less where the environment variable RINGLET_ISA
/// (portable, avx2, avx512; on ARM portable, neon) says so. Of one kind of processor, from the
/// narrowest to the widest.
enum class InstructionSet : std::uint8_t { portable, neon, avx2, avx512, automatic };

using PortableSet = std::integral_constant<InstructionSet, InstructionSet::portable>;
using NeonSet = std::integral_constant<InstructionSet, InstructionSet::neon>;
using Avx2Set = std::integral_constant<InstructionSet, InstructionSet::avx2>;
using Avx512Set = std::integral_constant<InstructionSet, InstructionSet::avx512>;

/// What a processor multiplies bf16 with: AVX512_BF16's vectors, or AMX's tiles. `automatic`: the
/// best that it has and the instruction set allows (avx512).
enum class Bf16Products : std::uint8_t { none, vectors, tiles, automatic };

/// The widest that this processor has.
InstructionSet widest_instruction_set();
/// The same, or less where RINGLET_ISA says so. Throws DeviceError where that asks for more.
InstructionSet detect_instruction_set();
const char* name_of(InstructionSet isa);

/// What this processor has for bf16 beside `isa`, and the system lets this process use.
Bf16Products detect_bf16_products(InstructionSet isa);
const char* name_of(Bf16Products products);

/// Whether this program is for x86-64 or aarch64, and what it has versions for.
#if defined(__x86_64__)
inline constexpr bool kX86 = true, kArm = false;
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::portable,
                                                      InstructionSet::avx2, InstructionSet::avx512};
#elif defined(__aarch64__)
inline constexpr bool kX86 = false, kArm = true;
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::portable,
                                                      InstructionSet::neon};
#else
inline constexpr bool kX86 = false, kArm = false;
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::portable};
#endif

/// version(tag of `isa`). Versions that are not for this kind of processor need not exist.
template <class Version>
decltype(auto) for_instruction_set(InstructionSet isa, Version version) {
  if constexpr (kX86) {
    if (isa == InstructionSet::avx512) return version(Avx512Set{});
    if (isa == InstructionSet::avx2) return version(Avx2Set{});
  }
  if constexpr (kArm) {
    if (isa == InstructionSet::neon) return version(NeonSet{});
  }
  return version(PortableSet{});
}

}  // namespace ringlet
