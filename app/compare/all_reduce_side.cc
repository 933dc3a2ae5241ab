// The side of a file of `ringlet bench all-reduce --json`, or of such rows as lines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "app/compare/side.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/machine.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::app::compare {

namespace {

using bench::Measurement;

constexpr std::size_t kLongestList = 100;

/// "openmpi: 4 ranks as processes over mpi, on 2 machines (between), f32 sum in place"
std::string group_of(const Measurement& m) {
  return fmt::format(
      "{}{} ranks as {} over {}{}, {}", m.engine == Measurement().engine ? "" : m.engine + ": ",
      m.ranks, m.ranks_as, m.transport,
      m.machines == 1 ? "" : fmt::format(", on {} machines ({})", m.machines, m.level),
      bench::work_text(m));
}

/// Why a row decides nothing; empty where it counts.
std::string why_not(const Measurement& m) {
  if (!m.right()) return "its results are wrong";
  if (m.counts) return "";
  return m.why_not.empty() ? "the benchmark says so" : m.why_not;
}

Row row_of(const Measurement& m) {
  return {.group = group_of(m),
          .name = m.strategy,
          .bytes = m.bytes,
          .figure = {m.median_us, m.low_us, m.high_us},
          .why_not = why_not(m),
          .wrong = !m.right()};
}

/// One that counts, and of two that do or do not the quicker one.
bool is_better(const Row& row, const Row& former) {
  if (row.why_not.empty() != former.why_not.empty()) return row.why_not.empty();
  return row.figure.value < former.figure.value;
}

/// "2, 4", of what `values` has without repetition.
template <class T>
std::string list_of(const std::vector<Measurement>& rows, T value) {
  std::set<decltype(value(rows.front()))> values;
  for (const Measurement& row : rows) values.insert(value(row));
  return on_one_line(fmt::format("{}", fmt::join(values, ", ")), kLongestList);
}

std::vector<Trait> traits_of(const std::vector<Measurement>& rows, const nlohmann::json& machine,
                             const nlohmann::json& document) {
  const std::string version = word_in(machine, "ringlet");
  const auto pinned = [](const Measurement& m) { return m.pinned ? "pinned" : "not pinned"; };
  const auto type = [](const Measurement& m) { return m.type + " " + m.op; };
  const auto collective = [](const Measurement& m) { return m.collective; };
  return {
      {"machines", machine_words(machine)},
      {"builds", build_words(document)},
      {"versions", version.empty() ? "" : "by ringlet " + version},
      {"ranks", "with " + list_of(rows, [](const Measurement& m) { return m.ranks; }) + " ranks"},
      {"collectives", "of " + list_of(rows, collective)},
      {"types", "with " + list_of(rows, type)},
      {"pinning", "with ranks " + list_of(rows, pinned)},
      use_of_cores(bench::mean_shared_core(rows))};
}

}  // namespace

Side all_reduce_side(const std::filesystem::path& file) {
  const std::vector<Measurement> measurements = bench::read_measurements(file);
  Side side{.file = file.string(), .kind = Kind::all_reduce};
  const nlohmann::json document = json_or_discarded(read_text(file, bench::kMostRowsBytes));
  side.traits = traits_of(measurements, bench::read_machine(file), document);
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> places;
  for (const Measurement& m : measurements) {
    Row row = row_of(m);
    const auto [place, is_new] =
        places.try_emplace({row.group, row.name, row.bytes}, side.rows.size());
    if (is_new) {
      side.rows.push_back(std::move(row));
    } else if (Row& former = side.rows[place->second]; is_better(row, former)) {
      former = std::move(row);
    }
  }
  return side;
}

}  // namespace ringlet::app::compare
