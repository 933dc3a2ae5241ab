#include "base/interference.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <tuple>
#include <utility>

#include "base/trace.h"

namespace ringlet {

namespace {

namespace fs = std::filesystem;

/// Seconds in a processor's queue since the thread began; negative where the kernel does not count.
double read_waited(const fs::path& root) {
  std::ifstream file(root / "proc/thread-self/schedstat");
  double ran = 0, waited = 0;
  return file >> ran >> waited ? 1e-9 * waited : -1;
}

std::int64_t read_switches() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/// Ticks of all processors, and the stolen ones among them: "cpu user nice system idle iowait irq
/// softirq steal guest guest_nice", where guests are within user and nice.
std::pair<std::int64_t, std::int64_t> read_ticks(const fs::path& root) {
  std::ifstream file(root / "proc/stat");
  std::string word;
  std::int64_t all = 0, stolen = 0;
  if (!(file >> word) || word != "cpu") return {0, 0};
  constexpr int kFields = 8;
  for (int field = 0; field < kFields; ++field) {
    if (!(file >> stolen)) return {0, 0};
    all += stolen;
  }
  return {all, stolen};
}

}  // namespace

double Interference::stolen_share() const {
  return ticks > 0 ? static_cast<double>(stolen) / static_cast<double>(ticks) : 0;
}

Interference& Interference::operator+=(const Interference& other) {
  seconds += other.seconds;
  waited = knows_waits() && other.knows_waits() ? waited + other.waited : -1;
  switches += other.switches;
  stolen += other.stolen;
  ticks += other.ticks;
  return *this;
}

Interference worst_of(std::span<const Interference> threads) {
  Interference worst = threads.front(), machine = worst;
  for (const Interference& one : threads) {
    if (one.waited_share() > worst.waited_share()) worst = one;
    if (one.stolen_share() > machine.stolen_share()) machine = one;
  }
  worst.stolen = machine.stolen;
  worst.ticks = machine.ticks;
  return worst;
}

std::string in_words(const Interference& seen, const std::string& whose) {
  std::string text;
  if (seen.waited_share() >= kMuchWaited) {
    text = fmt::format("other work had {} processor for {:.0f} % of the time", whose,
                       100 * seen.waited_share());
  }
  // The kernel counts whole ticks of 10 ms: one or two of them may be next to nothing.
  constexpr std::int64_t kFewestTicks = 3;
  if (seen.stolen_share() >= kMuchStolen && seen.stolen >= kFewestTicks) {
    text += fmt::format("{}the machine's host took {:.0f} % of the processors' time",
                        text.empty() ? "" : ", ", 100 * seen.stolen_share());
  }
  return text;
}

InterferenceWatch::InterferenceWatch(Of of, fs::path root)
    : of_(of), root_(std::move(root)), begin_(read()) {}

InterferenceWatch::Reading InterferenceWatch::read() const {
  Reading reading;
  reading.at_ns = now_ns();
  reading.waited = read_waited(root_);
  reading.switches = read_switches();
  if (of_ != Of::thread) std::tie(reading.ticks, reading.stolen) = read_ticks(root_);
  return reading;
}

Interference InterferenceWatch::seen() const {
  const Reading end = read();
  Interference seen;
  // From before the first reading to behind the last: a wait between two of them lies within.
  seen.seconds = 1e-9 * static_cast<double>(now_ns() - begin_.at_ns);
  const bool known = begin_.waited >= 0 && end.waited >= begin_.waited;
  seen.waited = known ? end.waited - begin_.waited : -1;
  seen.switches = end.switches - begin_.switches;
  // A tick that the kernel takes back (it does, of stolen and idle ones) is none.
  seen.ticks = std::max<std::int64_t>(end.ticks - begin_.ticks, 0);
  seen.stolen = std::clamp<std::int64_t>(end.stolen - begin_.stolen, 0, seen.ticks);
  return seen;
}

}  // namespace ringlet
