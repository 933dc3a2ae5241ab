#include "bench/fma_peak.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/trace.h"
#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::bench {

namespace {

using Chain = lanes::FmaChainResult (*)(std::int64_t rounds);

/// Flops a nanosecond (billions a second) of one thread that works until the time is over.
double run_chain(Chain chain, std::int64_t nanoseconds) {
  constexpr std::int64_t kRounds = 20'000;
  const std::int64_t begin = now_ns();
  double flops = 0;
  volatile float looked_at = 0;
  std::int64_t now = begin;
  while (now - begin < nanoseconds) {
    const lanes::FmaChainResult result = chain(kRounds);
    flops += result.flops;
    looked_at = result.sum;
    now = now_ns();
  }
  (void)looked_at;
  return flops / static_cast<double>(now - begin);
}

/// All threads at once.
double run_threads(Chain chain, const FmaPeakOptions& options) {
  const auto nanoseconds = static_cast<std::int64_t>(options.seconds * 1e9);
  std::atomic<int> waiting{options.threads};
  std::vector<double> rates(static_cast<std::size_t>(options.threads));
  const auto work = [&](std::size_t thread) {
    --waiting;
    while (waiting > 0) std::this_thread::yield();
    rates[thread] = run_chain(chain, nanoseconds);
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < rates.size(); ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  double total = 0;
  for (const double rate : rates) total += rate;
  return total;
}

}  // namespace

double measure_fma_peak(const FmaPeakOptions& options) {
  const InstructionSet best = detect_instruction_set();
  const InstructionSet isa = options.isa == InstructionSet::automatic ? best : options.isa;
  if (isa > best) {
    throw DeviceError(std::string("this processor has no ") + name_of(isa) +
                      " (or RINGLET_ISA asks for less)");
  }
  const Chain chain = lanes::kernels_for(isa).fma_chain;
  double peak = 0;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    peak = std::max(peak, run_threads(chain, options));
  }
  return peak;
}

}  // namespace ringlet::bench
