#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

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

/// "a, b and c"
std::string list_text(std::vector<std::string> words) {
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : fmt::format("{} and {}", fmt::join(words, ", "), last);
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
  return list_text(std::move(names));
}

/// With those at which no row counts.
std::vector<std::int64_t> measured_sizes(const Group& group) {
  std::set<std::int64_t> sizes;
  for (const bench::Series* series : group) {
    for (const bench::Measurement& row : series->rows) sizes.insert(row.bytes);
  }
  return {sizes.begin(), sizes.end()};
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

/// Neighbours among the measured sizes.
struct Stretch {
  std::size_t first = 0, last = 0;  // in the list of those
};

/// Some of the measured sizes as few stretches.
std::vector<Stretch> stretches_of(const std::vector<std::int64_t>& some,
                                  const std::vector<std::int64_t>& measured) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (!std::binary_search(some.begin(), some.end(), measured[i])) continue;
    const bool goes_on = !stretches.empty() && stretches.back().last + 1 == i;
    if (!goes_on) stretches.push_back({i, i});
    stretches.back().last = i;
  }
  return stretches;
}

/// "up to 4 KiB", "at every size"; what is between these has been measured, and all of it is meant.
std::string range_of(const Stretch& stretch, const std::vector<std::int64_t>& measured) {
  const std::string first = in_words(measured[stretch.first]);
  const std::string last = in_words(measured[stretch.last]);
  const bool begins = stretch.first == 0, ends = stretch.last + 1 == measured.size();
  if (begins && ends) return measured.size() == 1 ? "at " + first : "at every size";
  if (ends) return "from " + first;
  if (begins) return "up to " + last;
  return first == last ? "at " + first : fmt::format("from {} to {}", first, last);
}

/// "at 7 of 12 sizes": of more stretches than a sentence can bear.
std::string number_of(const std::vector<std::int64_t>& some,
                      const std::vector<std::int64_t>& measured) {
  return fmt::format("at {} of {} sizes", some.size(), measured.size());
}

std::string range_of(const Lead& lead, const std::vector<std::int64_t>& decided,
                     const std::vector<std::int64_t>& measured) {
  const auto at = [&](std::size_t i) { return decided.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::vector<std::int64_t> sizes(at(lead.begin), at(lead.end));
  const std::vector<Stretch> stretches = stretches_of(sizes, measured);
  if (stretches.size() > kMostStretches) return number_of(sizes, measured);
  std::vector<std::string> words;
  for (const Stretch& stretch : stretches) words.push_back(range_of(stretch, measured));
  return list_text(std::move(words));
}

/// "; open at 256 KiB to 1 MiB": where nothing says which is the fastest.
std::string open_sizes(const std::vector<std::int64_t>& decided,
                       const std::vector<std::int64_t>& measured) {
  std::vector<std::int64_t> open;
  std::ranges::set_difference(measured, decided, std::back_inserter(open));
  if (open.empty()) return "";
  const std::vector<Stretch> stretches = stretches_of(open, measured);
  if (stretches.size() > kMostStretches) return "; open " + number_of(open, measured);
  std::vector<std::string> words;
  for (const Stretch& stretch : stretches) {
    const std::string first = in_words(measured[stretch.first]);
    const std::string last = in_words(measured[stretch.last]);
    words.push_back(first == last ? first : fmt::format("{} to {}", first, last));
  }
  return "; open at " + list_text(std::move(words));
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
  const std::vector<std::int64_t> measured = measured_sizes(group);
  std::string text =
      fmt::format("{}{} {}{}", who, names_in(all, *main, sizes), range_of(*main, sizes, measured),
                  beside_ring(*main, ring_of(all), sizes));
  for (const Lead& lead : leads) {
    if (&lead == &*main || leads.size() > kMostStretches) continue;
    text += fmt::format("; {} {}", names_in(all, lead, sizes), range_of(lead, sizes, measured));
  }
  return text + open_sizes(sizes, measured);
}

}  // namespace ringlet::app::report
