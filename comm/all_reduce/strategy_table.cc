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

}  // namespace

StrategyTable ranges_for(const StrategyTable& table, int ranks) {
  StrategyTable own;
  for (const StrategyRange& range : table) {
    if (!own.empty() && distance(own.front().ranks, ranks) < distance(range.ranks, ranks)) continue;
    if (!own.empty() && own.front().ranks != range.ranks) own.clear();
    own.push_back(range);
  }
  for (StrategyRange& range : own) range.ranks = ranks;
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
  const StrategyRange* best = nullptr;
  for (const StrategyRange& range : table) {
    const bool nearer =
        best == nullptr || distance(range.ranks, ranks) < distance(best->ranks, ranks);
    const bool of_the_same = best != nullptr && range.ranks == best->ranks;
    if (nearer || (of_the_same && range.from_bytes <= bytes)) best = &range;
  }
  return best == nullptr ? std::string_view() : best->strategy;
}

}  // namespace ringlet::comm
