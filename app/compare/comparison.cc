#include "app/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/files/file_error.h"
#include "base/one_line.h"

namespace ringlet::app::compare {

namespace {

namespace fs = std::filesystem;

using Key = std::tuple<std::string, std::string, std::int64_t>;
Key key_of(const Row& row) { return {row.group, row.name, row.bytes}; }

/// By group and name in the order in which they first come, then by size.
void sort_pairs(std::vector<Pair>& pairs) {
  std::map<std::string, std::size_t> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> names;
  for (const Pair& pair : pairs) {
    groups.try_emplace(pair.a.group, groups.size());
    names.try_emplace({pair.a.group, pair.a.name}, names.size());
  }
  const auto place = [&](const Pair& pair) {
    return std::tuple(groups.at(pair.a.group), names.at({pair.a.group, pair.a.name}), pair.a.bytes);
  };
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const Pair& x, const Pair& y) { return place(x) < place(y); });
}

std::string said_of(const std::string& name, const std::string& said, const char* measured) {
  return said.empty() ? name + " does not say" : fmt::format("{}{} {}", name, measured, said);
}

std::vector<Unlike> unlike_of(const Comparison& comparison) {
  std::vector<Unlike> all;
  for (std::size_t i = 0; i < comparison.a.traits.size(); ++i) {
    const Trait &a = comparison.a.traits[i], &b = comparison.b.traits[i];
    if (a.said == b.said || (a.of_both && (a.said.empty() || b.said.empty()))) continue;
    all.push_back(
        {a.of, fmt::format(
                   "unlike {}: {}, {}", a.of, said_of(comparison.names[0], a.said, " was measured"),
                   said_of(comparison.names[1], b.said, a.said.empty() ? " was measured" : ""))});
  }
  return all;
}

/// The files' own names; whole paths where these are the same.
std::array<std::string, 2> names_of(const Side& a, const Side& b) {
  const auto own = [](const std::string& file) {
    const fs::path path = fs::path(file).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
  };
  const bool differ = own(a.file) != own(b.file);
  return {on_one_line(differ ? own(a.file) : a.file), on_one_line(differ ? own(b.file) : b.file)};
}

/// "1 row", "3 rows"
std::string rows_text(std::size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "row" : "rows");
}

}  // namespace

Comparison compared(Side a, Side b) {
  if (a.kind != b.kind) {
    throw FileError(fmt::format("{} holds {} and {} holds {}; compare two of a kind", a.file,
                                name_of(a.kind), b.file, name_of(b.kind)));
  }
  Comparison result{std::move(a), std::move(b)};
  result.names = names_of(result.a, result.b);
  std::map<Key, const Row*> of_b;
  for (const Row& row : result.b.rows) of_b[key_of(row)] = &row;
  for (const Row& row : result.a.rows) {
    const auto found = of_b.find(key_of(row));
    if (found == of_b.end()) {
      result.only_a.push_back(row);
      continue;
    }
    const Row& other = *found->second;
    result.pairs.push_back({row, other,
                            row.is_rate ? ratio_of(time_of(row.figure), time_of(other.figure))
                                        : ratio_of(row.figure, other.figure)});
    of_b.erase(found);
  }
  for (const Row& row : result.b.rows) {
    if (of_b.contains(key_of(row))) result.only_b.push_back(row);
  }
  if (result.pairs.empty()) {
    throw FileError(fmt::format(
        "{} and {} have no row in common; measure the same collective, strategies, sizes, ranks, "
        "types and transport, both in place or out of place",
        result.a.file, result.b.file));
  }
  sort_pairs(result.pairs);
  result.unlike = unlike_of(result);
  return result;
}

Tally tally_of(const Comparison& comparison) {
  Tally tally;
  for (std::size_t i = 0; i < comparison.pairs.size(); ++i) {
    const Pair& pair = comparison.pairs[i];
    if (!pair.counts()) {
      ++tally.not_counted;
      continue;
    }
    if (!pair.ratio.has_interval()) ++tally.without_interval;
    switch (verdict_of(pair.ratio)) {
      case Verdict::better:
        ++tally.better;
        break;
      case Verdict::equal:
        ++tally.equal;
        break;
      case Verdict::worse:
        ++tally.worse;
        if (!tally.worst || pair.ratio.value > comparison.pairs[*tally.worst].ratio.value) {
          tally.worst = i;
        }
    }
  }
  return tally;
}

std::vector<Row> wrong_rows(const Comparison& comparison) {
  std::vector<Row> wrong;
  std::ranges::copy_if(comparison.b.rows, std::back_inserter(wrong), &Row::wrong);
  return wrong;
}

std::vector<std::size_t> beyond(const Comparison& comparison, double limit) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < comparison.pairs.size(); ++i) {
    const Pair& pair = comparison.pairs[i];
    if (pair.counts() && is_worse_than(pair.ratio, limit)) found.push_back(i);
  }
  return found;
}

std::string answer_of(const Comparison& comparison) {
  const Tally tally = tally_of(comparison);
  const std::size_t counted = comparison.pairs.size() - tally.not_counted;
  if (counted == 0) {
    return fmt::format("Nothing can be said: none of {} counts", rows_text(tally.not_counted));
  }
  std::string rows = rows_text(counted);
  if (tally.not_counted > 0) rows += counted == 1 ? " that counts" : " that count";
  if (!tally.worst) return fmt::format("None of {} is worse", rows);
  const Pair& worst = comparison.pairs[*tally.worst];
  return fmt::format("{} of {} {} worse, most of all {} by {}", tally.worse, rows,
                     tally.worse == 1 ? "is" : "are", name_of(worst.a), text_of_ratio(worst.ratio));
}

std::string others_of(const Comparison& comparison) {
  const Tally tally = tally_of(comparison);
  std::string text = fmt::format("{} better, {} equal", tally.better, tally.equal);
  if (tally.not_counted > 0) text += fmt::format(", {} not counted", tally.not_counted);
  if (tally.without_interval > 0) {
    text += fmt::format("; {} without an interval, better or worse as plain ratios",
                        rows_text(tally.without_interval));
  }
  return text;
}

}  // namespace ringlet::app::compare
