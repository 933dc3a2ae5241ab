// Interference: what a thread sees of other work on its machine while it measures something.
//
//   waited     it was ready to run and stood in a processor's queue (/proc/thread-self/schedstat).
//              A thread that sleeps, for a socket or a lock, does not wait
//   switches   it was taken off its processor (getrusage). A sched_yield() that let somebody else
//              run is one
//   stolen     ticks in which a virtual machine's host ran somebody else (/proc/stat)
//
// The load average is not among them: how many would like to run says nothing of whom they keep
// waiting, and the queue says just that.
//
// To read all of it takes some ten microseconds: between what is timed, never within.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace ringlet {

struct Interference {
  double seconds = 0;
  double waited = 0;                   ///< seconds; negative: the system does not tell
  std::int64_t switches = 0;           ///< the thread's own yields among them
  std::int64_t stolen = 0, ticks = 0;  ///< of all processors; 0 of 0: the system does not tell

  bool knows_waits() const { return waited >= 0; }
  double waited_share() const { return seconds > 0 && waited > 0 ? waited / seconds : 0; }
  double stolen_share() const;
  /// Of spans of the same thread.
  Interference& operator+=(const Interference& other);
};

// Below these shares of the time a median of many calls hardly moves: a call in ten that is kept
// waiting puts it where the 55th of a hundred was. A quiet machine's kernel takes less than 1 %.
inline constexpr double kMuchWaited = 0.1;
inline constexpr double kMuchStolen = 0.05;

/// The one that waited for the largest share of its time, with what was stolen from the machine
/// by whichever has read it. At least one.
Interference worst_of(std::span<const Interference> threads);

/// "other work had the thread's processor for 34 % of the time", "the machine's host took 12 % of
/// the processors' time", both joined by a comma; "" where neither is much. `whose`: "the
/// thread's".
std::string in_words(const Interference& seen, const std::string& whose);

/// From its construction on, for the thread that constructs and asks it.
class InterferenceWatch {
 public:
  enum class Of { thread, thread_and_machine };
  /// Without the machine, which one thread of it is enough for: nothing is known to be stolen, and
  /// the kernel need not write down all processors. `root` is where /proc is.
  explicit InterferenceWatch(Of of = Of::thread_and_machine, std::filesystem::path root = "/");
  Interference seen() const;

 private:
  struct Reading {
    std::int64_t at_ns = 0;
    double waited = -1;
    std::int64_t switches = 0, stolen = 0, ticks = 0;
  };
  Reading read() const;

  Of of_;
  std::filesystem::path root_;
  Reading begin_;
};

}  // namespace ringlet
