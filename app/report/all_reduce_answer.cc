#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "app/report/all_reduce_groups.h"
#include "app/report/all_reduce_page.h"
#include "app/report/axis.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/sizes.h"

namespace ringlet::app::report {

namespace {

constexpr double kAsFast = 1.1;
constexpr char kNoneCounts[] = "the machine was busy, and nothing that was measured tells a winner";
constexpr std::size_t kMostStretches = 3;  // that a sentence can bear

/// Neighbouring sizes at which a strategy is as fast as any.
struct Lead {
  const bench::Series* series = nullptr;
  std::size_t begin = 0, end = 0;  // in the list of sizes; end is behind the last
  std::size_t length() const { return end - begin; }
};

/// "8 KiB"; no line ends within it.
std::string in_words(std::int64_t bytes) {
  const std::string text = bench::size_text(bytes);
  if (std::isdigit(static_cast<unsigned char>(text.back())) != 0) return text + "\u00a0bytes";
  return fmt::format("{}\u00a0{}iB", text.substr(0, text.size() - 1), text.back());
}

/// The row with the least median; null where none of the group's counts.
const bench::Measurement* fastest_at(const Group& group, std::int64_t bytes) {
  const bench::Measurement* fastest = nullptr;
  for (const bench::Series* series : group) {
    const bench::Measurement* const row = series->at(bytes);
    if (row != nullptr && (fastest == nullptr || row->median_us < fastest->median_us))
      fastest = row;
  }
  return fastest;
}

bool is_as_fast(const bench::Series& series, const Group& group, std::int64_t bytes) {
  const bench::Measurement *row = series.at(bytes), *fastest = fastest_at(group, bytes);
  return row != nullptr &&
         (row->median_us <= kAsFast * fastest->median_us || bench::are_equal(*row, *fastest));
}

/// "two-shot and one-shot": with those that are equal to it at each of its sizes.
std::string names_in(const Group& group, const Lead& lead, const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> names{name_in(group, *lead.series)};
  for (const bench::Series* other : fixed_strategies(group)) {
    bool is_equal = other != lead.series;
    for (std::size_t i = lead.begin; i < lead.end && is_equal; ++i) {
      const bench::Measurement *ours = lead.series->at(sizes[i]), *theirs = other->at(sizes[i]);
      is_equal = theirs != nullptr && bench::are_equal(*ours, *theirs);
    }
    if (is_equal) names.push_back(name_in(group, *other));
  }
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} and {}", fmt::join(names, ", "), last);
}

/// Without those at which nothing says which is the fastest.
std::vector<std::int64_t> decided_sizes(const Group& group, const bench::Comparison& comparison) {
  std::vector<std::int64_t> sizes = sizes_in(group);
  std::erase_if(sizes, [&](std::int64_t bytes) {
    return std::find(comparison.open.begin(), comparison.open.end(), bytes) !=
           comparison.open.end();
  });
  return sizes;
}

/// From `begin` on, the strategy that stays as fast as any for the most sizes.
Lead longest_from(std::size_t begin, const Group& group, const std::vector<std::int64_t>& sizes) {
  Lead longest;
  for (const bench::Series* series : group) {
    Lead lead{series, begin, begin};
    while (lead.end < sizes.size() && is_as_fast(*series, group, sizes[lead.end])) ++lead.end;
    if (lead.length() > longest.length()) longest = lead;
  }
  return longest;
}

/// As few as cover all sizes.
std::vector<Lead> leads_of(const Group& group, const std::vector<std::int64_t>& sizes) {
  std::vector<Lead> leads;
  for (std::size_t i = 0; i < sizes.size(); i = leads.back().end) {
    leads.push_back(longest_from(i, group, sizes));
  }
  return leads;
}

std::string range_of(const Lead& lead, const std::vector<std::int64_t>& sizes) {
  const std::string first = in_words(sizes[lead.begin]), last = in_words(sizes[lead.end - 1]);
  if (lead.length() == sizes.size()) return sizes.size() == 1 ? "at " + first : "at every size";
  if (lead.end == sizes.size()) return "from " + first;
  if (lead.begin == 0) return "up to " + last;
  return lead.length() == 1 ? "at " + first : fmt::format("from {} to {}", first, last);
}

/// ", 3.1 times as fast as the ring at 32 KiB": where the ring is furthest behind.
std::string beside_ring(const Lead& lead, const bench::Series* ring,
                        const std::vector<std::int64_t>& sizes) {
  if (ring == nullptr || ring == lead.series) return "";
  double most = 0;
  std::int64_t at = 0;
  for (std::size_t i = lead.begin; i < lead.end; ++i) {
    const bench::Measurement *theirs = ring->at(sizes[i]), *ours = lead.series->at(sizes[i]);
    if (theirs == nullptr || bench::are_equal(*theirs, *ours)) continue;
    const double times = theirs->median_us / ours->median_us;
    if (times <= most) continue;
    most = times;
    at = sizes[i];
  }
  if (at == 0) return "";
  constexpr double kWithoutDecimals = 10;
  return fmt::format(", {:.{}f} times as fast as the ring at {}", most,
                     most < kWithoutDecimals ? 1 : 0, in_words(at));
}

/// Of a strategy that has no other beside it. `name`: with what stands behind it.
std::string alone(const bench::Series& series, const std::string& name) {
  if (series.curve.empty()) return kNoneCounts;
  const auto widest =
      std::max_element(series.curve.begin(), series.curve.end(),
                       [](const auto& a, const auto& b) { return a.busbw_gbs() < b.busbw_gbs(); });
  return fmt::format("{}up to {} GB/s of bus bandwidth, at {}", name,
                     with_digits(widest->busbw_gbs()), in_words(widest->bytes));
}

}  // namespace

std::string answer_of(const bench::Comparison& comparison) {
  const std::vector<Group> groups = groups_of(comparison);
  const Group& all = groups.front();
  const Group group = fixed_strategies(all);
  const std::string who = groups.size() > 1 ? name_of(groups, all) + " " : "";
  if (group.size() == 1) {
    const bench::Measurement& row = group.front()->rows.front();
    const bool is_only = row.strategy == bench::kOnlyStrategy;  // its name tells nothing
    return alone(*group.front(), is_only ? who : who + name_in(all, *group.front()) + ", ");
  }
  const std::vector<std::int64_t> sizes = decided_sizes(group, comparison);
  if (sizes.empty()) return kNoneCounts;
  const std::vector<Lead> leads = leads_of(group, sizes);
  const auto shorter = [](const Lead& a, const Lead& b) { return a.length() < b.length(); };
  // Of equals the last: large messages take the time.
  const auto main = std::max_element(leads.rbegin(), leads.rend(), shorter);
  std::string text = fmt::format("{}{} {}{}", who, names_in(all, *main, sizes),
                                 range_of(*main, sizes), beside_ring(*main, ring_of(all), sizes));
  if (leads.size() > kMostStretches) return text;
  for (const Lead& lead : leads) {
    if (&lead == &*main) continue;
    text += fmt::format("; {} {}", names_in(all, lead, sizes), range_of(lead, sizes));
  }
  return text;
}

}  // namespace ringlet::app::report
