#include "bench/all_reduce/measurement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "base/core_pace.h"
#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "base/median.h"
#include "base/one_line.h"
#include "bench/all_reduce/collective.h"

namespace ringlet::bench {

double Measurement::algbw_gbs() const {
  return median_us > 0 ? static_cast<double>(bytes) / median_us * 1e-3 : 0;
}

double Measurement::busbw_gbs() const {
  const Collective* const kind = find_collective(collective);
  return kind != nullptr && ranks > 0 ? algbw_gbs() * kind->bus_factor(ranks) : 0;
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
  measurement.iterations = static_cast<std::int64_t>(count);
  measurement.median_us = 1e6 * median_of(seconds);
  measurement.min_us = 1e6 * seconds.front();
  measurement.mean_us =
      1e6 * std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(count);
  measurement.p90_us = microseconds_at(0.9);
  measurement.p99_us = microseconds_at(0.99);
}

double shared_core_in(const nlohmann::json& object) {
  double share = -1;
  if (!object.contains("shared_core")) return share;
  read_field(object, "shared_core", share);
  if (!(share >= 0 && share <= 1)) throw std::runtime_error("'shared_core' is not from 0 to 1");
  return share;
}

nlohmann::json to_json(const Measurement& m) {
  nlohmann::json json = {{"engine", m.engine},
                         {"collective", m.collective},
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
  if (m.root != kNoRoot) json["root"] = m.root;
  if (m.machines > 1) json.update({{"machines", m.machines}, {"level", m.level}});
  if (m.shared_core >= 0) json["shared_core"] = m.shared_core;
  if (!m.checked) json["wrong"] = nullptr;
  if (!m.hashes.empty()) json["hashes"] = m.hashes;
  for (const RankTime& rank : m.by_rank) {
    json["by_rank"].push_back(
        {{"median_us", rank.median_us}, {"mean_us", rank.mean_us}, {"last", rank.last}});
  }
  return json;
}

namespace {

using nlohmann::json;

/// For a terminal, a table and a page.
void read_word(const json& row, const char* field, std::string& word, std::size_t longest = 60) {
  read_field(row, field, word);
  word = on_one_line(word, longest);
}

template <class T>
void read_if_any(const json& row, const char* field, T& value) {
  if (row.contains(field)) read_field(row, field, value);
}

std::vector<std::string> hashes_in(const json& row) {
  const auto found = row.find("hashes");
  if (found == row.end()) return {};
  std::vector<std::string> hashes;
  for (const json& hash : *found) {
    if (!found->is_array() || !hash.is_string()) {
      throw std::runtime_error("'hashes' is not a list of texts");
    }
    hashes.push_back(on_one_line(hash.get<std::string>(), 60));
  }
  return hashes;
}

std::vector<RankTime> ranks_in(const json& row) {
  std::vector<RankTime> ranks;
  const auto found = row.find("by_rank");
  if (found == row.end()) return ranks;
  if (!found->is_array()) throw std::runtime_error("'by_rank' is not a list");
  for (const json& one : *found) {
    if (!one.is_object()) throw std::runtime_error("'by_rank' is not a list of objects");
    RankTime& rank = ranks.emplace_back();
    read_field(one, "median_us", rank.median_us);
    read_field(one, "mean_us", rank.mean_us);
    read_field(one, "last", rank.last);
    if (rank.median_us > 0 && rank.mean_us > 0 && rank.last >= 0 && rank.last <= 1) continue;
    throw std::runtime_error("'by_rank' has a time that is not above 0, or a share that is none");
  }
  return ranks;
}

/// Throws std::runtime_error naming the field.
Measurement from_json(const json& row) {
  constexpr std::size_t kLongestReason = 300;
  Measurement m;
  read_word(row, "engine", m.engine);
  if (row.contains("collective")) read_word(row, "collective", m.collective);  // later than rows
  read_word(row, "ranks_as", m.ranks_as);
  read_word(row, "transport", m.transport);
  read_word(row, "strategy", m.strategy);
  read_field(row, "ranks", m.ranks);
  read_if_any(row, "machines", m.machines);
  if (row.contains("level")) read_word(row, "level", m.level);
  read_field(row, "bytes", m.bytes);
  read_field(row, "count", m.count);
  read_word(row, "type", m.type);
  read_word(row, "op", m.op);
  read_if_any(row, "root", m.root);
  read_field(row, "in_place", m.in_place);
  read_if_any(row, "pinned", m.pinned);
  read_field(row, "iterations", m.iterations);
  read_field(row, "median_us", m.median_us);
  read_field(row, "min_us", m.min_us);
  read_field(row, "p99_us", m.p99_us);
  read_if_any(row, "mean_us", m.mean_us);
  read_if_any(row, "p90_us", m.p90_us);
  read_if_any(row, "low_us", m.low_us);
  read_if_any(row, "high_us", m.high_us);
  // bench/peers/all_reduce has a list of rounds there.
  if (row.contains("rounds") && !row.at("rounds").is_array()) read_field(row, "rounds", m.rounds);
  read_if_any(row, "counts", m.counts);
  if (row.contains("why_not")) read_word(row, "why_not", m.why_not, kLongestReason);
  m.shared_core = shared_core_in(row);
  m.checked = !row.contains("wrong") || !row.at("wrong").is_null();
  if (m.checked) read_field(row, "wrong", m.wrong);
  m.hashes = hashes_in(row);
  m.by_rank = ranks_in(row);
  return m;
}

/// Why a row that could be read cannot be shown; "" if it can.
std::string complaint(const Measurement& m) {
  const Collective* const kind = find_collective(m.collective);
  if (kind == nullptr)
    return fmt::format("'collective' is '{}', and there is none of that name", m.collective);
  if (m.ranks < 2) return "'ranks' is below 2";
  const bool is_root = m.root >= 0 && m.root < m.ranks;
  if (kind->has_root ? !is_root : m.root != kNoRoot) {
    return fmt::format("'root' is {}, of {} with {} ranks", m.root, m.collective, m.ranks);
  }
  if (!m.by_rank.empty() && std::ssize(m.by_rank) != m.ranks) {
    return fmt::format("'by_rank' has {} of {} ranks", m.by_rank.size(), m.ranks);
  }
  if (m.machines < 1) return "'machines' is below 1";
  if (m.bytes < 1) return "'bytes' is below 1";
  if (m.count < 0) return "'count' is below 0";
  if (m.iterations < 0) return "'iterations' is below 0";
  if (m.rounds < 0) return "'rounds' is below 0";
  if (m.wrong < 0) return "'wrong' is below 0";
  if (!(m.median_us > 0)) return "'median_us' is not above 0";
  if (!(m.min_us > 0)) return "'min_us' is not above 0";
  if (!(m.p99_us > 0)) return "'p99_us' is not above 0";
  if (!(m.mean_us >= 0)) return "'mean_us' is below 0";
  if (!(m.p90_us >= 0)) return "'p90_us' is below 0";
  if (m.low_us == 0 && m.high_us == 0) return "";
  if (!(m.low_us > 0)) return "'low_us' is not above 0";
  return m.low_us <= m.high_us ? "" : "'high_us' is below 'low_us'";
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw FileError(fmt::format(
      "{}: {}; it should hold what 'ringlet bench all-reduce --json' writes, or such rows as lines",
      file.string(), why));
}

Measurement checked_row(const json& row, const std::filesystem::path& file, std::size_t number) {
  if (!row.is_object()) refuse(file, fmt::format("row {} is no object", number));
  std::string wrong;
  try {
    Measurement measurement = from_json(row);
    wrong = complaint(measurement);
    if (wrong.empty()) return measurement;
  } catch (const std::runtime_error& error) {
    wrong = error.what();
  }
  refuse(file, fmt::format("row {}: {}", number, wrong));
}

/// Says which row and field is no JSON. `row`: the number of the row that `text` is; 0: it is the
/// whole file.
[[noreturn]] void refuse_broken(const std::filesystem::path& file, const std::string& text,
                                std::size_t row) {
  const JsonBreak broken = where_json_breaks(text).value_or(JsonBreak{});
  auto step = broken.way.begin();
  if (broken.way.size() > 1 && *step == "rows") {
    row = 1 + std::stoul(*++step);
    ++step;
  }
  std::vector<std::string> what;
  if (row > 0) what.push_back(fmt::format("row {}", row));
  if (step != broken.way.end()) what.push_back(fmt::format("'{}'", on_one_line(*step, 60)));
  if (what.empty()) what.emplace_back("this");
  refuse(file, fmt::format("{} is not valid JSON ({})", fmt::join(what, ": "), broken.why));
}

/// The rows of the file's one object, or of its lines.
json rows_in(const std::string& text, const std::filesystem::path& file) {
  if (text.find('\0') != text.npos) refuse(file, "there is a zero byte");
  const json whole = json_or_discarded(text);
  if (whole.is_object() && whole.contains("rows")) {
    if (!whole.at("rows").is_array()) refuse(file, "'rows' is not a list");
    return whole.at("rows");
  }
  json rows = json::array();
  if (!whole.is_discarded()) {
    rows.push_back(whole);
    return rows;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    rows.push_back(json_or_discarded(line));
    if (!rows.back().is_discarded()) continue;
    const bool begins_object = rows.size() == 1 && line.back() != '}';  // of many lines
    refuse_broken(file, begins_object ? text : line, begins_object ? 0 : rows.size());
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

namespace {

/// In quotes where it needs them (RFC 4180).
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string to_csv(const std::vector<Measurement>& measurements) {
  std::string text =
      "engine,ranks_as,transport,strategy,ranks,bytes,count,type,op,in_place,iterations,median_us,"
      "min_us,p99_us,algbw_gbs,busbw_gbs,wrong,mean_us,p90_us,low_us,high_us,rounds,counts,"
      "why_not,collective,root,machines,level\n";
  for (const Measurement& m : measurements) {
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{},{:.3f},{:.3f},"
        "{:.3f},{:.3f},{},{},{},{},{},{},{}\n",
        csv_text(m.engine), csv_text(m.ranks_as), csv_text(m.transport), csv_text(m.strategy),
        m.ranks, m.bytes, m.count, csv_text(m.type), csv_text(m.op), m.in_place, m.iterations,
        m.median_us, m.min_us, m.p99_us, m.algbw_gbs(), m.busbw_gbs(),
        m.checked ? std::to_string(m.wrong) : "", m.mean_us, m.p90_us, m.low_us, m.high_us,
        m.rounds, m.counts, csv_text(m.why_not), m.collective,
        m.root == kNoRoot ? "" : std::to_string(m.root), m.machines, csv_text(m.level));
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

double mean_shared_core(const std::vector<Measurement>& measurements) {
  std::vector<double> shares;
  for (const Measurement& m : measurements) shares.push_back(m.shared_core);
  return mean_share(shares);
}

std::string on_shared_cores(const std::vector<Measurement>& measurements) {
  return shared_core_words(mean_shared_core(measurements), "the ranks' cores were",
                           "their other hyper-threads", "short calls take up to twice as long");
}

namespace {

/// Of a time that older files do not have.
std::string time_text(double microseconds) {
  return microseconds > 0 ? fmt::format("{:.2f}", microseconds) : "-";
}

/// Bytes and count are numbers or titles, and so is what follows the strategy.
template <class Bytes, class Count, class... Rest>
std::string table_line(int width, const Bytes& bytes, const Count& count, const std::string& type,
                       const std::string& op, const std::string& strategy, const Rest&... rest) {
  return fmt::format(
      "{:>10} {:>9} {:>4} {:>5}  {:<{}} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>6} {:>5}",
      bytes, count, type, op, strategy, width, rest...);
}

}  // namespace

std::string table_heading(int width) {
  return table_line(width, "size", "count", "type", "redop", "strategy", "time", "mean", "p90",
                    "p99", "min", "algbw", "busbw", "#wrong", "iters") +
         "\n" +
         table_line(width, "bytes", "", "", "", "", "us, median", "us", "us", "us", "us", "GB/s",
                    "GB/s", "", "") +
         "\n";
}

std::string table_row(const Measurement& m, int width) {
  const auto gbs = [](double value) { return fmt::format("{:.2f}", value); };
  return table_line(width, m.bytes, m.count, m.type, m.op, m.strategy, time_text(m.median_us),
                    time_text(m.mean_us), time_text(m.p90_us), time_text(m.p99_us),
                    time_text(m.min_us), gbs(m.algbw_gbs()), gbs(m.busbw_gbs()),
                    m.checked ? std::to_string(m.wrong) : "n/a", m.iterations) +
         (m.counts ? "" : "  does not count: " + m.why_not) + "\n" +
         (m.ranks_differ() ? fmt::format("{:>10} the ranks' results differ, by their hashes: {}\n",
                                         "", fmt::join(m.hashes, ", "))
                           : "");
}

}  // namespace ringlet::bench
