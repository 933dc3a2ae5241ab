// Chrome traces: where a run's time went.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "app/inspect/format.h"
#include "train/telemetry/trace_reader.h"

namespace ringlet::app::inspect {
namespace {

struct Sum {
  std::int64_t spans = 0;
  double time = 0, longest = 0, bytes = 0;

  void add(const train::TraceSpan& span) {
    ++spans;
    time += span.duration_us;
    longest = std::max(longest, span.duration_us);
    if (span.bytes > 0) bytes += static_cast<double>(span.bytes);
  }
};

/// A rank's extent, and its collectives: these follow each other, so their times add up.
struct Rank {
  Sum all, collectives;
  double begin = std::numeric_limits<double>::infinity();
  double end = -std::numeric_limits<double>::infinity();

  double extent() const { return end - begin; }
  void add(const train::TraceSpan& span) {
    all.add(span);
    if (span.category == "collective") collectives.add(span);
    begin = std::min(begin, span.begin_us);
    end = std::max(end, span.begin_us + span.duration_us);
  }
};

/// Totals over all spans, in memory that does not grow with their number.
struct Totals {
  Sum all;
  std::map<std::int64_t, Rank> ranks;
  std::map<std::string, Sum> categories;
  std::map<std::pair<std::string, std::string>, Sum> names;  // of a category
  std::set<std::pair<std::int64_t, std::int64_t>> streams;
  std::vector<train::TraceSpan> longest;  // the longest first
  bool all_names = true;

  void add(const train::TraceSpan& span) {
    constexpr std::size_t kMostNames = 10'000;
    all.add(span);
    ranks[span.rank].add(span);
    categories[span.category].add(span);
    streams.insert({span.rank, span.stream});
    const std::pair name{span.category, span.name};
    if (names.size() < kMostNames || names.count(name) > 0) {
      names[name].add(span);
    } else {
      all_names = false;
    }
    note_long(span);
  }

 private:
  void note_long(const train::TraceSpan& span) {
    constexpr std::size_t kKept = 5;
    const auto position = std::find_if(
        longest.begin(), longest.end(),
        [&](const train::TraceSpan& other) { return other.duration_us < span.duration_us; });
    if (position == longest.end() && longest.size() == kKept) return;
    longest.insert(position, span);
    if (longest.size() > kKept) longest.pop_back();
  }
};

Value time_of(double microseconds) { return {microseconds, Form::microseconds}; }

Table by_rank(const Totals& totals) {
  Table table{"ranks", {"rank", "spans", "extent", "collectives", "in collectives"}, {}};
  for (const auto& [rank, sum] : totals.ranks) {
    const double part = sum.extent() > 0 ? sum.collectives.time / sum.extent() : 0;
    table.rows.push_back({rank,
                          sum.all.spans,
                          time_of(sum.extent()),
                          time_of(sum.collectives.time),
                          {part, Form::share}});
  }
  return table;
}

Table by_category(const Totals& totals) {
  Table table{"categories", {"category", "spans", "time", "longest", "moved"}, {}};
  for (const auto& [category, sum] : totals.categories) {
    const auto moved = static_cast<std::int64_t>(sum.bytes);
    table.rows.push_back({category, sum.spans, time_of(sum.time), time_of(sum.longest),
                          moved > 0 ? Value(moved, Form::bytes) : Value()});
  }
  return table;
}

Table by_name(const Totals& totals) {
  constexpr std::size_t kShown = 20;
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> order(totals.names.begin(),
                                                                         totals.names.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  order.resize(std::min(order.size(), kShown));
  Table table{"names", {"name", "category", "spans", "time", "mean", "longest"}, {}};
  for (const auto& [name, sum] : order) {
    table.rows.push_back({name.second, name.first, sum.spans, time_of(sum.time),
                          time_of(sum.time / static_cast<double>(sum.spans)),
                          time_of(sum.longest)});
  }
  return table;
}

Table longest(const Totals& totals, const train::TraceNames& names) {
  Table table{"longest", {"longest", "category", "rank", "stream", "begins after", "takes"}, {}};
  for (const train::TraceSpan& span : totals.longest) {
    const auto found = names.streams.find({span.rank, span.stream});
    const std::string stream =
        found == names.streams.end() ? fmt::format("{}", span.stream) : found->second;
    table.rows.push_back({span.name, span.category, span.rank, stream, time_of(span.begin_us),
                          time_of(span.duration_us)});
  }
  return table;
}

bool recognises_trace(const Subject& subject) {
  return !subject.is_folder && subject.head.starts_with('{') && !subject.gzipped &&
         subject.head.find("\"traceEvents\"") != std::string::npos;
}

Document describe_trace(const Subject& subject, const Wishes&) {
  Totals totals;
  const train::TraceNames names =
      train::read_trace(subject.path, [&](const train::TraceSpan& span) { totals.add(span); });
  Document document{subject.path.string(), "Chrome trace", {}, {}};
  double extent = 0, collectives = 0, extents = 0;
  for (const auto& [rank, sum] : totals.ranks) {
    extent = std::max(extent, sum.extent());
    extents += sum.extent();
    collectives += sum.collectives.time;
  }
  document.facts = {{"stored", bytes_value(subject.stored)},
                    {"rank count", static_cast<std::int64_t>(totals.ranks.size())},
                    {"streams", static_cast<std::int64_t>(totals.streams.size())},
                    {"spans", totals.all.spans},
                    {"extent", time_of(extent)},
                    {"in collectives", {extents > 0 ? collectives / extents : 0, Form::share}}};
  document.tables = {by_rank(totals), by_category(totals), by_name(totals), longest(totals, names)};
  if (totals.all.spans == 0) document.warnings.push_back("there are no spans in it");
  if (names.left_out > 0) {
    document.warnings.push_back(fmt::format(
        "the trace was full: {} later spans are left out (--trace-spans)", names.left_out));
  }
  if (!totals.all_names) {
    document.warnings.push_back("there are more than 10,000 names; the later ones are left out");
  }
  return document;
}

}  // namespace

const Format kTrace{recognises_trace, describe_trace};

}  // namespace ringlet::app::inspect
