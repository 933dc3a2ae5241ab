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

[[noreturn]] void throw_no_trace(const fs::path& file) {
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
      throw_no_trace(file_);
    }
    if (clock_.empty()) throw_no_trace(file_);
  }

  const fs::path& file() const { return file_; }
  const std::string& run() const { return run_; }
  int process() const { return process_; }
  const std::string& host() const { return host_; }
  /// Of its first span, by the clock of process 0.
  double origin_ns() const { return origin_ns_ + ahead_at(origin_ns_); }

  /// All of it is so much later than its clock says.
  void delay(double ns) { delay_ns_ = ns; }

  MergedTrace summary() const {
    const auto within =
        std::max_element(clock_.begin(), clock_.end(),
                         [](const auto& a, const auto& b) { return a.within_ns < b.within_ns; });
    return {.process = process_,
            .processes = processes_,
            .host = host_,
            .behind_us = 1e-3 * (static_cast<double>(clock_.front().ahead_ns) + delay_ns_),
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
    if (!std::getline(lines_, head) || head.size() > kLongest) throw_no_trace(file_);
    const ordered_json data = ordered_json::parse(head + "]}").at("otherData");
    run_ = data.at("run").get<std::string>();
    process_ = data.at("process").get<int>();
    processes_ = data.at("processes").get<int>();
    if (process_ < 0 || process_ >= processes_) throw_damaged(file_, line_);
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
    return static_cast<double>(first.ahead_ns) + delay_ns_ +
           drift() * (at_ns - static_cast<double>(first.at_ns));
  }

  fs::path file_;
  std::ifstream lines_;
  std::int64_t line_ = 1;
  std::string run_;
  int process_ = 0, processes_ = 1;
  std::string host_;
  double origin_ns_ = 0;  // a double holds nanoseconds of 100 days exactly
  double delay_ns_ = 0;
  std::vector<comm::ClockReading> clock_;
};

std::vector<Timeline> open_all(const std::vector<fs::path>& files) {
  std::vector<Timeline> timelines;
  for (const fs::path& file : files) timelines.emplace_back(file);
  std::sort(timelines.begin(), timelines.end(),
            [](const Timeline& a, const Timeline& b) { return a.process() < b.process(); });
  for (const Timeline& timeline : timelines) {
    if (timeline.run() == timelines.front().run()) continue;
    throw FileError(fmt::format("{} and {} are of two runs; merge what one run has written",
                                timelines.front().file().string(), timeline.file().string()));
  }
  for (std::size_t i = 1; i < timelines.size(); ++i) {
    if (timelines[i].process() != timelines[i - 1].process()) continue;
    throw FileError(fmt::format("{} and {} are both of process {}; name each process's file once",
                                timelines[i - 1].file().string(), timelines[i].file().string(),
                                timelines[i].process()));
  }
  return timelines;
}

/// One end of a message: in which timeline, and when.
struct MessageEnd {
  std::size_t timeline = 0;
  double at_us = 0;
};
struct Messages {
  std::unordered_map<std::string, MessageEnd> departures{}, arrivals{};  // by the message's id

  bool is_whole(const std::string& id) const {
    return departures.contains(id) && arrivals.contains(id);
  }
};

Messages messages_of(std::vector<Timeline> timelines) {
  Messages messages;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    for (ordered_json event; timelines[i].next(event, 0);) {
      const std::string phase = event.value("ph", "");
      if (phase != "s" && phase != "f") continue;
      auto& ends = phase == "s" ? messages.departures : messages.arrivals;
      ends[event.value("id", "")] = {i, event.value("ts", 0.0)};
    }
  }
  return messages;
}

/// Moves whole timelines by the least that puts every arrival behind its departure. Only clocks
/// that do not go evenly could ask for more than that, and are left where they are then.
void delay_receivers(std::vector<Timeline>& timelines, const Messages& messages) {
  constexpr double kNanosecond = 1e-3;
  std::vector<double> delays(timelines.size());
  for (std::size_t round = 0; round < timelines.size(); ++round) {
    for (const auto& [id, arrival] : messages.arrivals) {
      const auto departure = messages.departures.find(id);
      if (departure == messages.departures.end()) continue;
      const auto [from, at_us] = departure->second;
      const double least = at_us + delays[from] + kNanosecond - arrival.at_us;
      delays[arrival.timeline] = std::max(delays[arrival.timeline], least);
    }
  }
  for (std::size_t i = 0; i < timelines.size(); ++i) timelines[i].delay(1e3 * delays[i]);
}

/// Appends a timeline's events, of messages those of both ends. `separator` stands before the next.
void append(AtomicFile& out, Timeline& timeline, double origin_ns, bool names_host,
            const Messages& messages, const char*& separator) {
  for (ordered_json event; timeline.next(event, origin_ns);) {
    const std::string phase = event.value("ph", "");
    const bool is_message = phase == "s" || phase == "f";
    if (is_message && !messages.is_whole(event.value("id", ""))) continue;
    if (event.value("name", "") == "process_name") {
      std::string& name = event["args"]["name"].get_ref<std::string&>();
      if (names_host) name += " on " + timeline.host();
    }
    out.write(separator + event.dump(-1, ' ', true, ordered_json::error_handler_t::replace));
    separator = ",\n";
  }
}

}  // namespace

std::vector<MergedTrace> merge_traces(const std::vector<fs::path>& files, const fs::path& out) {
  std::vector<Timeline> timelines = open_all(files);
  const auto named = [](const fs::path& file, auto body) {
    try {
      return body();
    } catch (const ordered_json::exception&) {
      throw FileError(file.string() + ": a rank has no name; the file is damaged");
    }
  };
  const Messages messages =
      named(timelines.back().file(), [&files] { return messages_of(open_all(files)); });
  delay_receivers(timelines, messages);
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
  const char* separator = "\n";
  for (Timeline& timeline : timelines) {
    named(timeline.file(),
          [&] { append(file, timeline, origin_ns, hosts.size() > 1, messages, separator); });
  }
  file.write("\n]}\n");
  file.commit();
  return merged;
}

}  // namespace ringlet::train
