// CorePace: how fast the calling thread's core is now, and whether another thread has a part of it.
//
// Many processors run two threads on a core: hyper-threads. Both have its clock, so what waits for
// one result after the other takes as long as ever. They share how many instructions the core
// begins in a cycle, so what need not wait takes up to twice as long. The system says that to
// nobody: no time was waited or stolen. And a virtual machine does not know what its host runs on
// the other threads of its cores.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ringlet {

struct CorePace {
  double product = 0;  ///< seconds of a multiplication that waits for the one before
  double sum = 0;      ///< seconds of an addition among many that wait for nothing; 0: not known

  bool knows_sums() const { return sum > 0; }
  /// A product takes three cycles of the clock on Intel's processors since Nehalem and AMD's since
  /// Zen 2.
  double sums_in_a_product() const { return knows_sums() ? product / sum : 0; }
  /// Whether the core's other thread is at work. By itself a core with four to six adders makes 9.6
  /// to 15 sums in a product, and half as many beside another thread.
  bool is_shared() const;
};

/// Measured now, each the quickest of three, so that an interrupt does not count. Takes some ten
/// microseconds. Sums are known on x86-64 with AVX2 alone: cores before that have three adders.
CorePace core_pace();

/// Looks at a thread's core, of which some find it shared.
struct CoreLooks {
  std::int64_t looks = 0, shared = 0;

  void take(const CorePace& pace);
  CoreLooks& operator+=(const CoreLooks& other);
  /// The share of the latter; below 0: not known.
  double share() const;
};

/// The mean of the shares that are known; below 0: none is.
double mean_share(std::span<const double> shares);

/// "the ranks' cores were shared for 83 % of the time (with what ran on their other hyper-threads):
/// short calls take up to twice as long", of such a share; "" where that is a tenth or less.
/// `cores`: "the ranks' cores were"; `others`: "their other hyper-threads".
std::string shared_core_words(double share, const char* cores, const char* others,
                              const char* effect);

}  // namespace ringlet
