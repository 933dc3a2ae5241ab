// Each kernel of LeNet, in both layouts, and all of them as one step, and the convolutions of
// ResNet-18, against the FMA peak that is measured right before and after.
//
//   kernels_bench --benchmark_filter='lanes_fused/128'
//   kernels_bench --benchmark_filter='resnet18-cifar/lanes'
//
// Counters: best_ms and GFLOPs of the best repetition, and its share of one thread's peak (with the
// device's instruction set). Work is counted as a textbook counts it. The fused step leaves out
// what pooling drops, and Winograd's method needs a quarter of the multiplications. So both may
// show more than they compute, and their share can be above 1. Times are the thread's processor
// time, so that other processes do not count.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "bench/fma_peak.h"
#include "bench/kernels/kernel_calls.h"

namespace ringlet::bench {
namespace {

constexpr int kRepetitions = 30;
constexpr int kFewRepetitions = 5;  // of what takes long

std::int64_t processor_time_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Times `run`, and sets the counters from the fastest repetition.
template <class F>
void time_best(benchmark::State& state, InstructionSet isa, double flops, const F& run) {
  const FmaPeakOptions peak_options{.isa = isa};
  double peak = measure_fma_peak(peak_options);
  run();
  std::int64_t best = std::int64_t{1} << 62;
  for (auto _ : state) {
    const std::int64_t begin = processor_time_ns();
    run();
    const std::int64_t elapsed = processor_time_ns() - begin;
    best = std::min(best, elapsed);
    state.SetIterationTime(static_cast<double>(elapsed) * 1e-9);
  }
  peak = std::max(peak, measure_fma_peak(peak_options));
  const double rate = flops / static_cast<double>(best);
  state.counters["best_ms"] = static_cast<double>(best) * 1e-6;
  state.counters["GFLOPs"] = rate;
  state.counters["peak"] = peak;
  state.counters["share"] = rate / peak;
}

struct Setup {
  const char* name;
  Layout layout;
  bool fused;
  InstructionSet isa;
};

void bench_kernel(benchmark::State& state, const Setup& setup, std::int64_t batch,
                  std::size_t call) {
  const auto device = open_device({}, {.isa = setup.isa});
  const KernelCalls layers = make_lenet_layers(*device, batch, setup.layout, setup.fused);
  const KernelCall& kernel = layers.calls[call];
  layers.run();
  time_best(state, setup.isa, kernel.flops, kernel.run);
}

void bench_step(benchmark::State& state, const Setup& setup, std::int64_t batch) {
  const auto device = open_device({}, {.isa = setup.isa});
  const KernelCalls layers = make_lenet_layers(*device, batch, setup.layout, setup.fused);
  time_best(state, setup.isa, layers.flops(), [&] { layers.run(); });
  state.counters["samples/s"] = static_cast<double>(batch) * 1e3 / state.counters["best_ms"].value;
}

template <class F>
void register_one(const std::string& name, const F& function, int repetitions = kRepetitions) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseManualTime()
      ->Iterations(repetitions)
      ->Unit(benchmark::kMillisecond);
}

void register_setup(const Setup& setup, std::int64_t batch) {
  const std::string prefix = std::string(setup.name) + "/" + std::to_string(batch) + "/";
  register_one(prefix + "step", [=](benchmark::State& state) { bench_step(state, setup, batch); });
  const auto device = open_device({});
  const KernelCalls layers = make_lenet_layers(*device, 1, setup.layout, setup.fused);
  for (std::size_t call = 0; call < layers.calls.size(); ++call) {
    register_one(prefix + layers.calls[call].name,
                 [=](benchmark::State& state) { bench_kernel(state, setup, batch, call); });
  }
}

void bench_convolution(benchmark::State& state, Layout layout, bool of_224, std::size_t call) {
  const auto device = open_device({});
  const KernelCalls all = make_resnet_convolutions(*device, of_224 ? 16 : 64, layout, of_224);
  time_best(state, detect_instruction_set(), all.calls[call].flops, all.calls[call].run);
}

void register_resnet(Layout layout, bool of_224) {
  const std::string prefix = std::string(of_224 ? "resnet18/" : "resnet18-cifar/") +
                             (layout == Layout::lanes ? "lanes/" : "nchw/");
  const auto device = open_device({.kind = DeviceKind::meta});
  const KernelCalls all = make_resnet_convolutions(*device, 1, layout, of_224);
  for (std::size_t call = 0; call < all.calls.size(); ++call) {
    register_one(
        prefix + all.calls[call].name,
        [=](benchmark::State& state) { bench_convolution(state, layout, of_224, call); },
        kFewRepetitions);
  }
}

void register_all() {
  const InstructionSet best = detect_instruction_set();
  const Setup setups[] = {
      {"lanes_fused", Layout::lanes, true, best},
      {"lanes", Layout::lanes, false, best},
      {"lanes_fused_avx2", Layout::lanes, true, InstructionSet::avx2},
      {"lanes_fused_portable", Layout::lanes, true, InstructionSet::portable},
      {"nchw", Layout::nchw, false, best},
  };
  for (const Setup& setup : setups) {
    if (setup.isa > best) continue;
    for (const std::int64_t batch : {128, 32, 16}) register_setup(setup, batch);
  }
  for (const bool of_224 : {false, true}) {
    for (const Layout layout : {Layout::lanes, Layout::nchw}) register_resnet(layout, of_224);
  }
}

}  // namespace
}  // namespace ringlet::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  ringlet::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
