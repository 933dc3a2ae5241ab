#include "base/core_pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "base/instruction_set.h"
#include "base/trace.h"

namespace ringlet {

namespace {

/// Seconds of one of `count`, which `work` does all; of three times the quickest.
template <class Work>
double seconds_of_one(int count, Work work) {
  constexpr int kTimes = 3;
  double quickest = std::numeric_limits<double>::infinity();
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t begin = now_ns();
    work();
    quickest = std::min(quickest, 1e-9 * static_cast<double>(now_ns() - begin));
  }
  return quickest / count;
}

}  // namespace

bool CorePace::is_shared() const {
  constexpr double kByItself = 8;  // between half of the widest core and all of the narrowest
  return knows_sums() && sums_in_a_product() < kByItself;
}

void CoreLooks::take(const CorePace& pace) {
  if (!pace.knows_sums()) return;
  ++looks;
  if (pace.is_shared()) ++shared;
}

double CoreLooks::share() const {
  return looks > 0 ? static_cast<double>(shared) / static_cast<double>(looks) : -1;
}

CoreLooks& CoreLooks::operator+=(const CoreLooks& other) {
  looks += other.looks;
  shared += other.shared;
  return *this;
}

double mean_share(std::span<const double> shares) {
  double sum = 0;
  int known = 0;
  for (const double share : shares) {
    if (share < 0) continue;
    sum += share;
    ++known;
  }
  return known == 0 ? -1 : sum / known;
}

std::string shared_core_words(double share, const char* cores, const char* others,
                              const char* effect) {
  constexpr double kLittle = 0.1;
  if (share <= kLittle) return "";
  return fmt::format("{} shared for {:.0f} % of the time (with what ran on {}): {}", cores,
                     100 * share, others, effect);
}

#if defined(__x86_64__)

// In assembler, and at the beginning of a line of the cache, so that they take as long in every
// build: some processors are slower where a jump ends at such a line's border.
CorePace core_pace() {
  constexpr int kTurns = 1000, kSumsOfATurn = 8;
  CorePace pace;
  pace.product = seconds_of_one(kTurns, [] {
    std::int64_t product = 3;
    int turns = kTurns;
    asm volatile(
        "   .p2align 6\n"
        "1: imul %[factor], %[product]\n"
        "   sub $1, %[turns]\n"
        "   jnz 1b"
        : [product] "+&r"(product), [turns] "+&r"(turns)
        : [factor] "r"(std::int64_t{5})
        : "cc");
  });
  if (widest_instruction_set() == InstructionSet::portable) return pace;
  pace.sum = seconds_of_one(kTurns * kSumsOfATurn, [] {
    std::int64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    int turns = kTurns;
    asm volatile(  // from a register: some cores add constants without an adder
        "   .p2align 6\n"
        "1: add %[one], %[a]\n"
        "   add %[one], %[b]\n"
        "   add %[one], %[c]\n"
        "   add %[one], %[d]\n"
        "   add %[one], %[e]\n"
        "   add %[one], %[f]\n"
        "   add %[one], %[g]\n"
        "   add %[one], %[h]\n"
        "   sub $1, %[turns]\n"
        "   jnz 1b"
        : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d), [e] "+&r"(e), [f] "+&r"(f),
          [g] "+&r"(g), [h] "+&r"(h), [turns] "+&r"(turns)
        : [one] "r"(std::int64_t{1})
        : "cc");
  });
  return pace;
}

#else

CorePace core_pace() {
  constexpr int kTurns = 1000;
  CorePace pace;
  pace.product = seconds_of_one(kTurns, [] {
    volatile std::uint64_t kept = 1;
    std::uint64_t product = kept;
    for (int turn = 0; turn < kTurns; ++turn) product = product * product ^ 5;
    kept = product;
  });
  return pace;
}

#endif

}  // namespace ringlet
