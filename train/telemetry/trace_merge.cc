#include "train/telemetry/trace_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "comm/core/clock_reading.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

[[noreturn]] void throw_foreign(const fs::path& file) {
  throw FileError(file.string() +
                  " does not say which process wrote it and by which clock; merge what 'ringlet "
                  "train --processes --trace' of this version has written");
}

[[noreturn]] void throw_damaged(const fs::path& file, std::int64_t line) {
  throw FileError(fmt::format("{}: line {} is no event of a timeline; the file is damaged",
                              file.string(), line));
}

/// One process's file, read line by line.
class Timeline {
 public:
  explicit Timeline(const fs::path& file) : file_(file), lines_(open_input(file)) {
    try {
      read_head();
    } catch (const ordered_json::exception&) {
      throw_foreign(file_);
    }
    if (clock_.empty()) throw_foreign(file_);
  }

  const fs::path& file() const { return file_; }
  int process() const { return process_; }
  const std::string& host() const { return host_; }
  /// Of its first span, by the clock of process 0.
  double origin_ns() const { return origin_ns_ + ahead_at(origin_ns_); }

  MergedTrace summary() const {
    const auto within =
        std::max_element(clock_.begin(), clock_.end(),
                         [](const auto& a, const auto& b) { return a.within_ns < b.within_ns; });
    return {.process = process_,
            .host = host_,
            .behind_us = 1e-3 * static_cast<double>(clock_.front().ahead_ns),
            .within_us = 1e-3 * static_cast<double>(within->within_ns),
            .drift_ppm = 1e6 * drift()};
  }

  /// The next event, its time in microseconds since `origin_ns`; false at the end.
  bool next(ordered_json& event, double origin_ns) {
    std::string line;
    if (!std::getline(lines_, line)) throw_damaged(file_, line_ + 1);
    ++line_;
    if (line == "]}") return false;
    if (line.ends_with(',')) line.pop_back();
    event = ordered_json::parse(line, nullptr, false);
    if (!event.is_object()) throw_damaged(file_, line_);
    if (!event.contains("ts")) return true;
    if (!event["ts"].is_number()) throw_damaged(file_, line_);
    const double at = origin_ns_ + 1e3 * event["ts"].get<double>();
    event["ts"] = std::round(at + ahead_at(at) - origin_ns) / 1e3;
    return true;
  }

 private:
  void read_head() {
    constexpr std::size_t kLongest = 1 << 16;
    std::string head;
    if (!std::getline(lines_, head) || head.size() > kLongest) throw_foreign(file_);
    const ordered_json data = ordered_json::parse(head + "]}").at("otherData");
    process_ = data.at("process").get<int>();
    host_ = data.at("host").get<std::string>();
    origin_ns_ = data.at("origin_ns").get<double>();
    for (const ordered_json& reading : data.at("clock")) {
      clock_.push_back({reading.at(0).get<std::int64_t>(), reading.at(1).get<std::int64_t>(),
                        reading.at(2).get<std::int64_t>()});
    }
  }

  /// How much faster process 0's clock goes, as a share.
  double drift() const {
    const comm::ClockReading& first = clock_.front();
    const comm::ClockReading& last = clock_.back();
    if (last.at_ns <= first.at_ns) return 0;
    return static_cast<double>(last.ahead_ns - first.ahead_ns) /
           static_cast<double>(last.at_ns - first.at_ns);
  }
  double ahead_at(double at_ns) const {
    const comm::ClockReading& first = clock_.front();
    return static_cast<double>(first.ahead_ns) +
           drift() * (at_ns - static_cast<double>(first.at_ns));
  }

  fs::path file_;
  std::ifstream lines_;
  std::int64_t line_ = 1;
  int process_ = 0;
  std::string host_;
  double origin_ns_ = 0;  // a double holds nanoseconds of 100 days exactly
  std::vector<comm::ClockReading> clock_;
};

std::vector<Timeline> open_all(const std::vector<fs::path>& files) {
  std::vector<Timeline> timelines;
  for (const fs::path& file : files) timelines.emplace_back(file);
  std::sort(timelines.begin(), timelines.end(),
            [](const Timeline& a, const Timeline& b) { return a.process() < b.process(); });
  for (std::size_t i = 1; i < timelines.size(); ++i) {
    if (timelines[i].process() != timelines[i - 1].process()) continue;
    throw FileError(fmt::format("{} and {} are both of process {}; name each process's file once",
                                timelines[i - 1].file().string(), timelines[i].file().string(),
                                timelines[i].process()));
  }
  return timelines;
}

/// Writes the events of one timeline after the other. Two clocks may put a message's arrival before
/// its departure: then it comes right behind it. An arrival whose departure is not known yet stays
/// back, as text, until all are.
class MergedEvents {
 public:
  explicit MergedEvents(AtomicFile& out) : out_(out) {}

  void add(ordered_json& event) {
    const std::string phase = event.value("ph", ""), id = event.value("id", "");
    if (phase == "s") departures_[id] = event.value("ts", 0.0);
    if (phase == "f" && !departures_.contains(id)) {
      arrivals_.push_back(event.dump());
    } else {
      write(event);
    }
  }

  void finish() {
    for (const std::string& arrival : arrivals_) {
      ordered_json event = ordered_json::parse(arrival);
      write(event);
    }
  }

 private:
  void write(ordered_json& event) {
    if (event.value("ph", "") == "f") mend(event);
    out_.write(separator_ + event.dump(-1, ' ', true, ordered_json::error_handler_t::replace));
    separator_ = ",\n";
  }

  void mend(ordered_json& arrival) const {
    constexpr double kNanosecond = 1e-3;
    const auto departure = departures_.find(arrival.value("id", ""));
    if (departure == departures_.end() || arrival.value("ts", 0.0) > departure->second) return;
    arrival["ts"] = std::round(1e3 * (departure->second + kNanosecond)) / 1e3;
  }

  AtomicFile& out_;
  const char* separator_ = "\n";
  std::unordered_map<std::string, double> departures_;  // when each message left, by its id
  std::vector<std::string> arrivals_;
};

void append(MergedEvents& out, Timeline& timeline, double origin_ns, bool names_host) {
  for (ordered_json event; timeline.next(event, origin_ns);) {
    if (event.value("name", "") == "process_name") {
      std::string& name = event["args"]["name"].get_ref<std::string&>();
      if (names_host) name += " on " + timeline.host();
    }
    out.add(event);
  }
}

}  // namespace

std::vector<MergedTrace> merge_traces(const std::vector<fs::path>& files, const fs::path& out) {
  std::vector<Timeline> timelines = open_all(files);
  std::vector<MergedTrace> merged;
  std::set<std::string> hosts;
  double origin_ns = timelines.front().origin_ns();
  for (const Timeline& timeline : timelines) {
    merged.push_back(timeline.summary());
    hosts.insert(timeline.host());
    origin_ns = std::min(origin_ns, timeline.origin_ns());
  }
  AtomicFile file(out);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  MergedEvents events(file);
  for (Timeline& timeline : timelines) {
    try {
      append(events, timeline, origin_ns, hosts.size() > 1);
    } catch (const ordered_json::exception&) {
      throw FileError(timeline.file().string() + ": a rank has no name; the file is damaged");
    }
  }
  events.finish();
  file.write("\n]}\n");
  file.commit();
  return merged;
}

}  // namespace ringlet::train
