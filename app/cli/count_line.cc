#include "app/cli/count_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "train/telemetry/console.h"
#include "train/telemetry/progress.h"

namespace ringlet::app {

namespace {

constexpr std::chrono::milliseconds kRenewal(100);
constexpr const char* kEraseLine = "\r\x1b[2K";

}  // namespace

bool can_renew_lines(int descriptor) {
  const char* kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): never written
  return isatty(descriptor) != 0 && (kind == nullptr || std::string_view(kind) != "dumb");
}

CountLine::CountLine(std::int64_t total, std::string what, bool wanted)
    : total_(total), what_(std::move(what)), wanted_(wanted && can_renew_lines(STDERR_FILENO)) {}

void CountLine::show(std::int64_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || now - last_ < kRenewal) return;
  last_ = now;
  shown_ = true;
  const std::string line =
      fmt::format("{} of {} {}", train::with_commas(done), train::with_commas(total_), what_);
  std::fputs((kEraseLine + line.substr(0, train::room_on(stderr))).c_str(), stderr);
}

void CountLine::clear() {
  if (shown_) std::fputs(kEraseLine, stderr);
  shown_ = false;
}

}  // namespace ringlet::app
