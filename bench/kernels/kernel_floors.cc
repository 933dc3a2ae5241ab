// Compares each kernel that passes over memory with its floor: the time of an empty kernel, and
// that of the bytes which it must move at the rate at which this device moves them. Both are
// measured first. The rate is that of the faster one of two passes over a large tensor: the
// device's own copy, which on some GPUs is far from what memory gives, and Ringlet's `scale`.
// cuDNN's pooling and softmax stand beside Ringlet's; batch norm has its channels last.
//
//   kernel_floors --device cuda:0 --batch 256,4096 --json floors.json
//
// A call's time is that of many calls divided by their number: on a GPU they are captured as one
// graph, so the host's launches do not count, only what the GPU needs from one kernel to the next
// ("an empty kernel"). Each of Ringlet's is one launch. What fits into the cache may be faster than
// memory: look at the largest batch.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "bench/kernels/memory_kernels.h"
#include "kernels/elementwise.h"

namespace ringlet::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr int kRepetitions = 9;
constexpr double kRepetitionSeconds = 0.01;  // so that starting and waiting for it do not count
constexpr int kMaxCalls = 2000;

/// Median seconds of one call.
class Timer {
 public:
  explicit Timer(Device& device) : stream_(device.compute()) {}

  double operator()(const std::function<void()>& run) {
    run();  // libraries open, code is loaded
    const double once = time_of(run, 1);
    const double wanted = kRepetitionSeconds / std::max(once, 1e-7);
    const int calls = std::clamp(static_cast<int>(wanted), 1, kMaxCalls);
    std::vector<double> seconds;
    for (int i = 0; i < kRepetitions; ++i) seconds.push_back(time_of(run, calls) / calls);
    std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
    return seconds[kRepetitions / 2];
  }

 private:
  /// Seconds of `calls` calls in a row.
  double time_of(const std::function<void()>& run, int calls) {
    std::unique_ptr<Graph> graph;
    if (stream_.can_capture()) {
      stream_.begin_capture();
      for (int i = 0; i < calls; ++i) run();
      graph = stream_.end_capture();
      stream_.launch(*graph);  // the first launch brings it to the device
    }
    stream_.synchronize();
    const Clock::time_point begin = Clock::now();
    if (graph) {
      stream_.launch(*graph);
    } else {
      for (int i = 0; i < calls; ++i) run();
    }
    stream_.synchronize();
    return seconds_since(begin);
  }

  Stream& stream_;
};

/// What the floor is made of.
struct Machine {
  double bytes_per_second = 0;  ///< read and written, of the faster large pass
  const char* pass = "";        ///< which that is: copy, scale
  double empty_seconds = 0;     ///< of a kernel that writes one number
};

Machine measure_machine(Device& device, Timer& timer) {
  const std::int64_t elements = device.id().kind == DeviceKind::cuda ? 1 << 28 : 1 << 25;
  const Tensor from(device, {elements}), to(device, {elements}), one(device, {1});
  Stream& stream = device.compute();
  fill(stream, 1, from);
  const double copy_seconds = timer([&] { copy(stream, from, to); });
  const double scale_seconds = timer([&] { scale(stream, 0.5F, from, 0, to); });
  return {static_cast<double>(2 * from.view().bytes()) / std::min(copy_seconds, scale_seconds),
          copy_seconds <= scale_seconds ? "copy" : "scale", timer([&] { fill(stream, 0, one); })};
}

struct Row {
  std::string name;
  std::int64_t batch = 0;
  double bytes = 0;
  double seconds = 0;
  double floor_seconds = 0;
  double times_floor() const { return seconds / floor_seconds; }
};

void measure(Device& device, Timer& timer, const Machine& machine, std::int64_t batch,
             std::vector<Row>& rows) {
  TensorStore store(device);
  std::vector<MemoryKernel> kernels = memory_kernels(store, batch);
  for (MemoryKernel& kernel : cudnn_memory_kernels(store, batch)) {
    kernels.push_back(std::move(kernel));
  }
  for (const MemoryKernel& kernel : kernels) {
    const double floor = kernel.bytes / machine.bytes_per_second + machine.empty_seconds;
    rows.push_back({kernel.name, batch, kernel.bytes, timer(kernel.run), floor});
    const Row& row = rows.back();
    fmt::print("{:<42} {:>6} {:>10.3f} {:>11.2f} {:>11.2f} {:>8.2f}\n", row.name, row.batch,
               1e-6 * row.bytes, 1e6 * row.seconds, 1e6 * row.floor_seconds, row.times_floor());
    std::fflush(stdout);
  }
}

nlohmann::ordered_json to_json(const Device& device, const Machine& machine,
                               const std::vector<Row>& rows) {
  nlohmann::ordered_json json{{"device", device.id().to_string()},
                              {"copy_bytes_per_second", machine.bytes_per_second},
                              {"pass", machine.pass},
                              {"empty_kernel_seconds", machine.empty_seconds},
                              {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    json["rows"].push_back({{"kernel", row.name},
                            {"batch", row.batch},
                            {"bytes", row.bytes},
                            {"seconds", row.seconds},
                            {"floor_seconds", row.floor_seconds},
                            {"times_floor", row.times_floor()}});
  }
  return json;
}

void measure_all(DeviceId id, const std::vector<std::int64_t>& batches,
                 const std::filesystem::path& file) {
  const auto device = open_device(id);
  Timer timer(*device);
  const Machine machine = measure_machine(*device, timer);
  fmt::print("{} moves {:.1f} GB/s (read and written, by {}); an empty kernel takes {:.2f} us\n\n",
             id.to_string(), 1e-9 * machine.bytes_per_second, machine.pass,
             1e6 * machine.empty_seconds);
  fmt::print("{:<42} {:>6} {:>10} {:>11} {:>11} {:>8}\n", "kernel", "batch", "MB", "us", "floor us",
             "x floor");
  std::vector<Row> rows;
  for (const std::int64_t batch : batches) measure(*device, timer, machine, batch, rows);
  if (!file.empty()) {
    write_file_atomically(file, row_a_line(to_json(*device, machine, rows)));
  }
}

int run(int argc, char** argv) {
  CLI::App app("Times the kernels that pass over memory against the bytes that they must move.",
               "kernel_floors");
  std::string device = "cpu";
  std::vector<std::int64_t> batches{256, 4096};
  std::filesystem::path file;
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--batch", batches, "batch sizes, such as 256,4096")
      ->delimiter(',')
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--json", file, "also write the figures here");
  CLI11_PARSE(app, argc, argv);
  measure_all(DeviceId::parse(device), batches, file);
  return 0;
}

}  // namespace
}  // namespace ringlet::bench

int main(int argc, char** argv) {
  try {
    return ringlet::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_floors: %s\n", error.what());
    return 1;
  }
}
