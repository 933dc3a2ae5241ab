#include "bench/all_reduce/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"

namespace ringlet::bench {

double Measurement::algbw_gbs() const {
  return median_us > 0 ? static_cast<double>(bytes) / median_us * 1e-3 : 0;
}

double Measurement::busbw_gbs() const {
  return ranks > 0 ? algbw_gbs() * 2 * (ranks - 1) / ranks : 0;
}

bool Measurement::ranks_differ() const {
  return std::any_of(hashes.begin(), hashes.end(),
                     [this](const std::string& hash) { return hash != hashes.front(); });
}

void set_times(Measurement& measurement, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t count = seconds.size();
  const auto microseconds_at = [&](double share) {
    return 1e6 *
           seconds[static_cast<std::size_t>(std::ceil(share * static_cast<double>(count - 1)))];
  };
  const double middle = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
  measurement.iterations = static_cast<std::int64_t>(count);
  measurement.median_us = 1e6 * middle;
  measurement.min_us = 1e6 * seconds.front();
  measurement.mean_us =
      1e6 * std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(count);
  measurement.p90_us = microseconds_at(0.9);
  measurement.p99_us = microseconds_at(0.99);
}

nlohmann::json to_json(const Measurement& m) {
  nlohmann::json json = {{"engine", m.engine},
                         {"ranks_as", m.ranks_as},
                         {"transport", m.transport},
                         {"strategy", m.strategy},
                         {"ranks", m.ranks},
                         {"bytes", m.bytes},
                         {"count", m.count},
                         {"type", m.type},
                         {"op", m.op},
                         {"in_place", m.in_place},
                         {"pinned", m.pinned},
                         {"iterations", m.iterations},
                         {"median_us", m.median_us},
                         {"min_us", m.min_us},
                         {"p99_us", m.p99_us},
                         {"mean_us", m.mean_us},
                         {"p90_us", m.p90_us},
                         {"low_us", m.low_us},
                         {"high_us", m.high_us},
                         {"rounds", m.rounds},
                         {"counts", m.counts},
                         {"why_not", m.why_not},
                         {"algbw_gbs", m.algbw_gbs()},
                         {"busbw_gbs", m.busbw_gbs()},
                         {"wrong", m.wrong}};
  if (m.machines > 1) json.update({{"machines", m.machines}, {"level", m.level}});
  if (!m.checked) json["wrong"] = nullptr;
  if (!m.hashes.empty()) json["hashes"] = m.hashes;
  return json;
}

namespace {

using nlohmann::json;

/// What older files and other engines' have not.
void read_certainty(const json& row, Measurement& m) {
  m.mean_us = row.value("mean_us", 0.0);
  m.p90_us = row.value("p90_us", 0.0);
  m.low_us = row.value("low_us", 0.0);
  m.high_us = row.value("high_us", 0.0);
  // bench/peers/all_reduce has a list of rounds there.
  if (row.contains("rounds") && row.at("rounds").is_number())
    m.rounds = row.at("rounds").get<int>();
  m.counts = row.value("counts", true);
  constexpr std::size_t kLongest = 300;
  m.why_not = on_one_line(row.value("why_not", std::string()), kLongest);
}

Measurement from_json(const json& row) {
  const auto word = [&row](const char* field) {  // for a terminal, a table and a page
    constexpr std::size_t kLongest = 60;
    return on_one_line(row.at(field).get<std::string>(), kLongest);
  };
  Measurement m;
  m.engine = word("engine");
  m.ranks_as = word("ranks_as");
  m.transport = word("transport");
  m.strategy = word("strategy");
  m.ranks = row.at("ranks").get<int>();
  m.machines = row.value("machines", 1);
  if (row.contains("level")) m.level = word("level");
  m.bytes = row.at("bytes").get<std::int64_t>();
  m.count = row.at("count").get<std::int64_t>();
  m.type = word("type");
  m.op = word("op");
  m.in_place = row.at("in_place").get<bool>();
  m.pinned = row.value("pinned", false);
  m.iterations = row.at("iterations").get<std::int64_t>();
  m.median_us = row.at("median_us").get<double>();
  m.min_us = row.at("min_us").get<double>();
  m.p99_us = row.at("p99_us").get<double>();
  m.checked = !row.at("wrong").is_null();
  if (m.checked) m.wrong = row.at("wrong").get<std::int64_t>();
  m.hashes = row.value("hashes", std::vector<std::string>());
  read_certainty(row, m);
  return m;
}

/// Why a row that could be read cannot be shown; "" if it can.
std::string complaint(const Measurement& m) {
  if (m.ranks < 2) return "'ranks' is below 2";
  if (m.machines < 1) return "'machines' is below 1";
  if (m.bytes < 1) return "'bytes' is below 1";
  for (const double time : {m.median_us, m.min_us, m.p99_us}) {
    if (!(time > 0)) return "a time is not above 0";
  }
  if (!(m.mean_us >= 0 && m.p90_us >= 0)) return "a time is below 0";
  if (!(m.low_us >= 0 && m.low_us <= m.high_us)) return "'low_us' is not from 0 to 'high_us'";
  return "";
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw FileError(fmt::format(
      "{}: {}; it should hold what 'ringlet bench all-reduce --json' writes, or such rows as lines",
      file.string(), why));
}

/// The library's words without its name and number: "key 'ranks' not found".
std::string reason(const json::exception& error) {
  const std::string text = error.what();
  const auto end_of_number = text.find("] ");
  return end_of_number == text.npos ? text : text.substr(end_of_number + 2);
}

Measurement checked_row(const json& row, const std::filesystem::path& file, std::size_t number) {
  try {
    Measurement measurement = from_json(row);
    const std::string wrong = complaint(measurement);
    if (!wrong.empty()) refuse(file, fmt::format("row {}: {}", number, wrong));
    return measurement;
  } catch (const json::exception& error) {
    refuse(file, fmt::format("row {}: {}", number, reason(error)));
  }
}

/// The rows of the file's one object, or of its lines.
json rows_in(const std::string& text, const std::filesystem::path& file) {
  const json whole = json_or_discarded(text);
  if (whole.is_object() && whole.contains("rows") && whole.at("rows").is_array()) {
    return whole.at("rows");
  }
  json rows = json::array();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    rows.push_back(json_or_discarded(line));
    if (!rows.back().is_object()) refuse(file, fmt::format("row {} is no object", rows.size()));
  }
  return rows;
}

}  // namespace

std::vector<Measurement> read_measurements(const std::filesystem::path& file) {
  const std::string text = read_text(file, kMostRowsBytes);
  std::vector<Measurement> measurements;
  for (const json& row : rows_in(text, file)) {
    measurements.push_back(checked_row(row, file, measurements.size() + 1));
  }
  if (measurements.empty()) refuse(file, "there are no rows");
  return measurements;
}

std::string to_csv(const std::vector<Measurement>& measurements) {
  std::string text =
      "engine,ranks_as,transport,strategy,ranks,bytes,count,type,op,in_place,iterations,median_us,"
      "min_us,p99_us,algbw_gbs,busbw_gbs,wrong,mean_us,p90_us,low_us,high_us,rounds,counts,"
      "why_not\n";
  for (const Measurement& m : measurements) {
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{},{:.3f},{:.3f},"
        "{:.3f},{:.3f},{},{},{}\n",
        m.engine, m.ranks_as, m.transport, m.strategy, m.ranks, m.bytes, m.count, m.type, m.op,
        m.in_place, m.iterations, m.median_us, m.min_us, m.p99_us, m.algbw_gbs(), m.busbw_gbs(),
        m.checked ? std::to_string(m.wrong) : "", m.mean_us, m.p90_us, m.low_us, m.high_us,
        m.rounds, m.counts, m.why_not.empty() ? "" : '"' + m.why_not + '"');
  }
  return text;
}

std::string not_counting(const std::vector<Measurement>& measurements) {
  const auto bad = std::count_if(measurements.begin(), measurements.end(),
                                 [](const Measurement& m) { return !m.counts; });
  if (bad == 0) return "";
  return fmt::format("the machine was busy: {} of {} rows {} not count", bad, measurements.size(),
                     bad == 1 ? "does" : "do");
}

std::string table_heading(int width) {
  const auto line = [](auto... words) {
    return fmt::format(
        "{:>10} {:>9} {:>4} {:>5}  {:<{}} {:>10} {:>10} {:>10} {:>7} {:>7} {:>6} {:>5}\n",
        words...);
  };
  return line("size", "count", "type", "redop", "strategy", width, "time", "min", "p99", "algbw",
              "busbw", "#wrong", "iters") +
         line("bytes", "", "", "", "", width, "us, median", "us", "us", "GB/s", "GB/s", "", "");
}

std::string table_row(const Measurement& m, int width) {
  return fmt::format(
      "{:>10} {:>9} {:>4} {:>5}  {:<{}} {:>10.2f} {:>10.2f} {:>10.2f} {:>7.2f} {:>7.2f} {:>6} "
      "{:>5}{}\n",
      m.bytes, m.count, m.type, m.op, m.strategy, width, m.median_us, m.min_us, m.p99_us,
      m.algbw_gbs(), m.busbw_gbs(), m.checked ? std::to_string(m.wrong) : "n/a", m.iterations,
      m.counts ? "" : "  does not count: " + m.why_not);
}

}  // namespace ringlet::bench
