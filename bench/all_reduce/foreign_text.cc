#include "bench/all_reduce/foreign_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/one_line.h"
#include "bench/all_reduce/collective.h"
#include "bench/all_reduce/comparison.h"

namespace ringlet::bench {

namespace {

using Rows = std::vector<const Measurement*>;

/// Rows of one table: those that differ in size and place alone, in the order in which they come.
/// What was measured twice is in two tables.
std::vector<Rows> tables_of(const std::vector<Measurement>& rows) {
  const auto key = [](const Measurement& m) {
    return std::tie(m.engine, m.collective, m.ranks_as, m.transport, m.strategy, m.ranks,
                    m.machines, m.level, m.type, m.op, m.root, m.machine);
  };
  using Key = decltype(key(rows.front()));
  std::map<std::tuple<Key, std::int64_t, bool>, int> times;  // that a size and place was there
  std::map<std::pair<Key, int>, std::size_t> places;
  std::vector<Rows> tables;
  for (const Measurement& row : rows) {
    const int before = times[{key(row), row.bytes, row.in_place}]++;
    const auto [place, is_new] = places.try_emplace({key(row), before}, tables.size());
    if (is_new) tables.emplace_back();
    tables[place->second].push_back(&row);
  }
  return tables;
}

/// What a table is of, beyond what its columns say.
std::string subject_of(const Measurement& m) {
  std::string subject = fmt::format("{} {}, {} ranks as {} over {}", m.engine, m.strategy, m.ranks,
                                    m.ranks_as, m.transport);
  if (m.machines > 1) subject += fmt::format(", {} machines ({})", m.machines, m.level);
  return on_one_line(subject + where_text(m.machine), 200);
}

/// Why rows do not count, a line each.
std::string notes_of(const Rows& table) {
  std::string notes;
  for (const Measurement* row : table) {
    if (row->counts) continue;
    notes += fmt::format("# {} bytes {} place does not count: {}\n", row->bytes,
                         row->in_place ? "in" : "out of", row->why_not);
  }
  return notes;
}

std::string nccl_name(const std::string& word) {
  static const std::map<std::string, std::string> names{
      {"f32", "float"}, {"f16", "half"}, {"bf16", "bfloat16"}, {"i32", "int32"}, {"mean", "avg"}};
  const auto found = names.find(word);
  return found == names.end() ? word : found->second;
}

/// Microseconds in seven columns at most.
std::string nccl_time(double us) {
  return fmt::format("{:.{}f}", us, us >= 10000 ? 0 : us >= 100 ? 1 : 2);
}

template <class... Words>
std::string nccl_columns(const Words&... words) {
  return fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", words...);
}

std::string nccl_figures(const Measurement* row) {
  if (row == nullptr) return nccl_columns("N/A", "N/A", "N/A", "N/A");
  const auto gbs = [](double value) { return fmt::format("{:.2f}", value); };
  return nccl_columns(nccl_time(row->median_us), gbs(row->algbw_gbs()), gbs(row->busbw_gbs()),
                      row->checked ? std::to_string(row->wrong) : "N/A");
}

template <class... Words>
std::string nccl_line(char begin, const Words&... words) {
  return fmt::format("{}{:>11}  {:>12}  {:>8}  {:>6}  {:>6}", begin, words...);
}

/// By which the sizes grow; nccl-tests' words know of no unlike steps, which are 0.
std::string step_of(const Rows& table) {
  std::set<std::int64_t> sizes;
  for (const Measurement* row : table) sizes.insert(row->bytes);
  if (sizes.size() < 2) return "1(factor)";
  std::set<std::int64_t> steps, factors;
  for (auto last = sizes.begin(), size = std::next(last); size != sizes.end(); last = size++) {
    steps.insert(*size - *last);
    factors.insert(*size % *last == 0 ? *size / *last : 0);
  }
  if (factors.size() == 1 && *factors.begin() > 0)
    return fmt::format("{}(factor)", *factors.begin());
  return fmt::format("{}(bytes)", steps.size() == 1 ? *steps.begin() : 0);
}

std::string nccl_head(const Rows& table, const NcclHead& head) {
  const Measurement& row = *table.front();
  const auto [least, most] = std::minmax_element(
      table.begin(), table.end(), [](const auto* a, const auto* b) { return a->bytes < b->bytes; });
  std::string text = fmt::format(
      "# nThread {} nGpus 1 minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} agg iters: "
      "1 validation: {} graph: 0\n#\n# {}; time is the median of the calls\n#\n# Using devices\n",
      row.ranks_as == "threads" ? row.ranks : 1, (*least)->bytes, (*most)->bytes,
      head.step.empty() ? step_of(table) : head.step, head.warm_up, row.iterations,
      row.checked ? 1 : 0, subject_of(row));
  constexpr int kMostLines = 1024;  // a file may say any number
  for (int rank = 0; rank < std::min(row.ranks, kMostLines); ++rank) {
    text += fmt::format("#  Rank {:>2} device {}\n", rank, head.device);
  }
  const std::string nothing = nccl_line('#', "", "", "", "", "");
  text += fmt::format("#\n{}  {:^26}  {:^32}\n", nothing, "out-of-place", "in-place");
  const std::string names = nccl_columns("time", "algbw", "busbw", "#wrong");
  text += nccl_line('#', "size", "count", "type", "redop", "root") + names + names + "\n";
  const std::string units = nccl_columns("(us)", "(GB/s)", "(GB/s)", "");
  return text + nccl_line('#', "(B)", "(elements)", "", "", "") + units + units + "\n";
}

}  // namespace

std::string nccl_text(const std::vector<Measurement>& rows, const NcclHead& head) {
  std::string text;
  for (const Rows& table : tables_of(rows)) {
    text += nccl_head(table, head);
    std::map<std::int64_t, std::pair<const Measurement*, const Measurement*>> sizes;
    double busbw = 0;
    std::int64_t wrong = 0;
    for (const Measurement* row : table) {
      auto& [apart, in_place] = sizes[row->bytes];
      (row->in_place ? in_place : apart) = row;
      busbw += row->busbw_gbs();
      wrong += row->right() ? 0 : std::max<std::int64_t>(row->wrong, 1);
    }
    for (const auto& [bytes, places] : sizes) {
      const Measurement& row = *(places.first != nullptr ? places.first : places.second);
      text += nccl_line(' ', bytes, row.count, nccl_name(row.type), nccl_name(row.op), row.root) +
              nccl_figures(places.first) + nccl_figures(places.second) + "\n";
    }
    text += notes_of(table);
    text +=
        fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.6g}\n#\n", wrong,
                    wrong == 0 ? "OK" : "FAILED", busbw / static_cast<double>(table.size()));
  }
  return text;
}

namespace {

const char* osu_title(CollectiveId id) {
  switch (id) {
    case CollectiveId::all_reduce:
      return "Allreduce";
    case CollectiveId::all_gather:
      return "Allgather";
    case CollectiveId::reduce_scatter:
      return "Reduce_scatter";
    case CollectiveId::broadcast:
      return "Broadcast";
    case CollectiveId::reduce:
      return "Reduce";
    case CollectiveId::all_to_all:
      return "All-to-All Personalized Exchange";
    case CollectiveId::send_recv:
      return "Sendrecv";
  }
  return "";
}

/// The size as OSU counts it: of all-gather and all-to-all that of one rank's part.
std::int64_t osu_size(const Collective& collective, const Measurement& row) {
  const bool is_of_a_part =
      collective.id == CollectiveId::all_gather || collective.id == CollectiveId::all_to_all;
  return is_of_a_part ? row.bytes / row.ranks : row.bytes;
}

std::string osu_datatype(const std::string& type) {
  return type == "f32" ? "MPI_FLOAT" : type == "i32" ? "MPI_INT" : type;
}

std::string osu_row(const Collective& collective, const Measurement& row, bool all) {
  std::vector<double> means;
  for (const RankTime& rank : row.by_rank) means.push_back(rank.mean_us);
  if (means.empty()) means.push_back(row.mean_us > 0 ? row.mean_us : row.median_us);
  const double mean =
      std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size());
  const auto [least, most] = std::minmax_element(means.begin(), means.end());
  std::string text = fmt::format("{:<10}{:>18.2f}", osu_size(collective, row), mean);
  if (all) text += fmt::format("{:>18.2f}{:>18.2f}{:>12}", *least, *most, row.iterations);
  return text + "\n";
}

}  // namespace

std::string osu_text(const std::vector<Measurement>& rows, bool all) {
  std::string text;
  for (const Rows& table : tables_of(rows)) {
    const Measurement& first = *table.front();
    const Collective& collective = *find_collective(first.collective);
    text += fmt::format(
        "\n# OSU MPI {} Latency Test, in whose columns are: {}\n# Datatype: {}.\n{:<10}{:>18}",
        osu_title(collective.id), subject_of(first), osu_datatype(first.type), "# Size",
        "Avg Latency(us)");
    if (all)
      text += fmt::format("{:>18}{:>18}{:>12}", "Min Latency(us)", "Max Latency(us)", "Iterations");
    text += "\n";
    for (const Measurement* row : table) text += osu_row(collective, *row, all);
    text += notes_of(table);
  }
  return text;
}

}  // namespace ringlet::bench
