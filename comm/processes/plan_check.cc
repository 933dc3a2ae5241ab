#include "comm/processes/plan_check.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "comm/core/rank_text.h"

namespace ringlet::comm {

std::string to_text(const Plan& plan) {
  std::string text;
  for (const auto& [name, value] : plan) {
    text.append(name).append(1, '\0').append(value).append(1, '\0');
  }
  return text;
}

Plan plan_of(const std::string& text) {
  Plan plan;
  std::size_t begin = 0;
  const auto next = [&text, &begin] {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    std::string field = text.substr(begin, end - begin);
    begin = std::min(end + 1, text.size());  // a text may break off
    return field;
  };
  while (begin < text.size()) {
    std::string name = next();
    plan.emplace_back(std::move(name), next());
  }
  return plan;
}

namespace {

/// show(entry `i`) of every rank.
template <class Show>
std::vector<std::string> column(const std::vector<Plan>& plans, std::size_t i, Show show) {
  std::vector<std::string> shown;
  for (const Plan& plan : plans) shown.push_back(i < plan.size() ? show(plan[i]) : "no such entry");
  return shown;
}

bool all_equal(const std::vector<std::string>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

}  // namespace

std::string find_difference(const std::vector<std::string>& text_of_rank) {
  if (all_equal(text_of_rank)) return "";
  std::vector<Plan> plans;
  std::size_t longest = 0;
  for (const std::string& text : text_of_rank) {
    longest = std::max(longest, plans.emplace_back(plan_of(text)).size());
  }
  for (std::size_t i = 0; i < longest; ++i) {
    const auto names =
        column(plans, i, [](const auto& entry) { return "\"" + entry.first + "\""; });
    if (!all_equal(names)) {
      return "the ranks' plans differ in entry " + std::to_string(i + 1) + ": " +
             text_of_values(names);
    }
    const auto values = column(plans, i, [](const auto& entry) { return entry.second; });
    if (!all_equal(values)) {
      return "the ranks' plans differ in " + names[0] + ": " + text_of_values(values);
    }
  }
  return "the ranks' plans differ where one of them breaks off";
}

}  // namespace ringlet::comm
