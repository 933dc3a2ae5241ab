#include "train/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "train/atomic_file.h"

namespace ringlet::train {

namespace {

/// The step after which a line was written; none for a line that is not ours (or was cut off when
/// the run was killed).
std::optional<std::int64_t> step_of(const std::string& line, std::int64_t steps_per_epoch) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto number = [&json](const char* key) -> std::optional<std::int64_t> {
    if (!json.contains(key) || !json[key].is_number_integer()) return {};
    return json[key].get<std::int64_t>();
  };
  if (!json.is_object() || !json.contains("kind")) return {};
  if (json["kind"] == "step") return number("step");
  const auto epoch = number("epoch");
  if (json["kind"] != "epoch" || !epoch) return {};
  return *epoch * steps_per_epoch;
}

/// The lines of a former run that a run resumed at `first_step` keeps.
std::string kept_lines(const std::filesystem::path& path, std::int64_t first_step,
                       std::int64_t steps_per_epoch) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line)) {
    const auto reached = step_of(line, steps_per_epoch);
    if (reached && *reached <= first_step) kept += line + "\n";
  }
  return kept;
}

/// JSON has no word for NaN and infinity.
std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& path, std::int64_t first_step,
                             std::int64_t steps_per_epoch)
    : path_(path) {
  const auto kind = std::filesystem::status(path).type();
  const bool goes_on = first_step > 0 && kind == std::filesystem::file_type::regular;
  const std::string kept = goes_on ? kept_lines(path, first_step, steps_per_epoch) : "";
  const bool is_device = kind == std::filesystem::file_type::character ||
                         kind == std::filesystem::file_type::fifo;  // /dev/stdout, a named pipe
  if (!is_device) write_file_atomically(path, kept);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw FileError("--metrics " + path.string() + " cannot be opened: " + std::strerror(errno) +
                    "; name another file");
  }
}

MetricsWriter::~MetricsWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MetricsWriter::append(const char* text, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw FileError("--metrics " + path_.string() + " cannot be written: " +
                      std::strerror(errno) + "; free some space or name another file");
    }
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void MetricsWriter::step_done(const StepReport& report) {
  fmt::memory_buffer line;  // 500 bytes in place: nothing is allocated
  fmt::format_to(std::back_inserter(line),
                 R"({{"kind":"step","epoch":{},"step":{},"loss":{},"lr":{},"samples":{}}})"
                 "\n",
                 report.epoch, report.step, report.loss, report.lr, report.samples);
  append(line.data(), line.size());
}

void MetricsWriter::epoch_done(const EpochReport& report) {
  const std::string line = fmt::format(
      R"({{"kind":"epoch","epoch":{},"train_loss":{},"test_loss":{},"test_accuracy":{},)"
      R"("seconds":{},"samples_per_second":{},"sync_share":{}}})"
      "\n",
      report.epoch, number(report.train_loss), number(report.test.loss), report.test.accuracy(),
      report.seconds, number(report.samples_per_second), number(report.sync_share));
  append(line.data(), line.size());
}

}  // namespace ringlet::train
