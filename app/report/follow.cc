#include "app/report/follow.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"

namespace ringlet::app::report {

namespace {

namespace fs = std::filesystem;

/// What a page is made of, as long as nothing of it was written again.
struct Trace {
  std::uintmax_t size = 0;
  fs::file_time_type time{};
  bool operator==(const Trace&) const = default;
};

std::vector<Trace> traces_of(const std::vector<fs::path>& runs) {
  std::vector<Trace> traces;
  for (const fs::path& run : runs) {
    for (const char* name : {"metrics.jsonl", "run.json", "roc.csv", "model.safetensors"}) {
      std::error_code error;
      Trace& trace = traces.emplace_back();
      trace.time = fs::last_write_time(run / name, error);
      if (!error) trace.size = fs::file_size(run / name, error);
    }
  }
  return traces;
}

/// In short sleeps: whoever asks to stop need not wait.
void sleep(double seconds, const StopRequest& stop) {
  constexpr std::chrono::milliseconds kNap(50);
  const Stopwatch watch;
  while (watch.seconds() < seconds && !(stop && stop())) std::this_thread::sleep_for(kNap);
}

bool has_a_line(const fs::path& file) {
  std::ifstream text(file);
  std::string line;
  return std::getline(text, line) && !text.eof();
}

constexpr double kLook = 0.5;  // seconds between two looks at the files

}  // namespace

std::optional<fs::path> silent_run(const std::vector<fs::path>& runs) {
  std::error_code error;
  for (const fs::path& run : runs) {
    if (fs::is_directory(run, error) && !has_a_line(run / "metrics.jsonl")) return run;
  }
  return {};
}

void await_runs(const std::vector<fs::path>& runs, const StopRequest& stop) {
  while (silent_run(runs) && !(stop && stop())) sleep(kLook, stop);
}

void follow_runs(ReportOptions options, Renewal renewal,
                 const std::function<void(std::string page)>& show,
                 const std::function<void(const std::string& why)>& warn) {
  constexpr double kShareOfUs = 9;  // times as long as a page takes, nothing is done behind it
  constexpr int kFew = 4;           // failures, while a file is being replaced or a run begins anew
  options.renewal = renewal;
  const StopRequest& stop = options.stop_requested;
  std::vector<Trace> shown;
  int failures = 0;
  std::string told;
  for (bool is_first = true; !(stop && stop()); is_first = false) {
    const std::vector<Trace> now = traces_of(options.runs);
    double took = 0;
    if (now != shown) {
      const Stopwatch watch;
      try {
        show(report_page(options));
        shown = now;
        failures = 0;
        told.clear();
      } catch (const Error& error) {  // it is tried again, also where nothing changes any more
        if (is_first) throw;
        if (++failures >= kFew && std::exchange(told, error.what()) != error.what()) warn(told);
      }
      took = watch.seconds();
    }
    sleep(std::max(kLook, kShareOfUs * took), stop);
  }
}

}  // namespace ringlet::app::report
