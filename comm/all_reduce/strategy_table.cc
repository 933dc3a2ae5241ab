#include "comm/all_reduce/strategy_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace ringlet::comm {

namespace {

/// How far apart two numbers of ranks are.
double distance(int ranks, int other) {
  return std::abs(std::log(static_cast<double>(ranks) / static_cast<double>(other)));
}

/// The table's number of ranks that is nearest to this one; the first of two that are as near. 0:
/// the table is empty.
int nearest(const StrategyTable& table, int ranks) {
  const auto found = std::ranges::min_element(
      table, {}, [ranks](const StrategyRange& range) { return distance(range.ranks, ranks); });
  return found == table.end() ? 0 : found->ranks;
}

}  // namespace

StrategyTable ranges_for(const StrategyTable& table, int ranks) {
  const int known = nearest(table, ranks);
  StrategyTable own;
  for (const StrategyRange& range : table) {
    if (range.ranks == known) own.push_back({ranks, range.from_bytes, range.strategy});
  }
  return own;
}

std::string format_table(const StrategyTable& table) {
  std::string text;
  for (const StrategyRange& range : table) {
    if (!text.empty()) text += ';';
    text += std::to_string(range.from_bytes) + ' ' + range.strategy;
  }
  return text;
}

StrategyTable parse_table(std::string_view text, int ranks) {
  const auto fail = [](const char* why) {
    throw std::runtime_error(std::string("the table of strategies ") + why);
  };
  if (ranks < 2) fail("is for fewer than two ranks");
  StrategyTable table;
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
    std::int64_t from = -1;
    const auto number = std::from_chars(range.data(), range.data() + range.size(), from);
    const std::string_view rest = range.substr(static_cast<std::size_t>(number.ptr - range.data()));
    if (number.ec != std::errc() || rest.size() < 2 || rest.front() != ' ') {
      fail("has no size and name of a strategy");
    }
    const bool follows = table.empty() ? from == 0 : from > table.back().from_bytes;
    if (!follows) fail("does not begin at 0 bytes, or is in no order");
    table.push_back({ranks, from, std::string(rest.substr(1))});
  }
  if (table.empty()) fail("is empty");
  return table;
}

std::string_view look_up(const StrategyTable& table, int ranks, std::int64_t bytes) {
  const int known = nearest(table, ranks);
  std::string_view strategy;
  for (const StrategyRange& range : table) {
    const bool counts = strategy.empty() || range.from_bytes <= bytes;
    if (range.ranks == known && counts) strategy = range.strategy;
  }
  return strategy;
}

}  // namespace ringlet::comm
