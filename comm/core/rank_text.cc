#include "comm/core/rank_text.h"

#include <algorithm>
#include <utility>

namespace ringlet::comm {

namespace {

/// "0, 1 and 3"
std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

}  // namespace

std::string text_of(const char* noun, const std::vector<int>& numbers) {
  return noun + std::string(numbers.size() == 1 ? " " : "s ") + listed(numbers);
}

std::string text_of(const std::vector<int>& ranks) { return text_of("rank", ranks); }

std::string text_of_processes(const std::vector<int>& processes) {
  return (processes.size() == 1 ? "process " : "processes ") + listed(processes);
}

std::string text_of_values(const std::vector<std::string>& value_of_rank) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;  // in the order of first ranks
  for (std::size_t rank = 0; rank < value_of_rank.size(); ++rank) {
    const std::string& value = value_of_rank[rank];
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&value](const auto& known) { return known.first == value; });
    if (group == groups.end()) group = groups.insert(group, {value, {}});
    group->second.push_back(static_cast<int>(rank));
  }
  std::string text;
  for (const auto& [value, ranks] : groups) {
    if (!text.empty()) text += ", ";
    text += text_of(ranks) + (ranks.size() == 1 ? " has " : " have ") + value;
  }
  return text;
}

void RankNames::set(Words words) {
  const std::lock_guard lock(mutex_);
  words_ = std::move(words);
}

bool RankNames::are_set() const {
  const std::lock_guard lock(mutex_);
  return words_ != nullptr;
}

std::string RankNames::of(const std::vector<int>& ranks) const {
  const std::lock_guard lock(mutex_);
  return words_ ? words_(ranks) : text_of(ranks);
}

}  // namespace ringlet::comm
