#include "data/unseen_targets.h"

#include <cstddef>

namespace ringlet::data {

namespace {

constexpr std::size_t kShown = 8;  // names, or runs of neighbours
constexpr std::size_t kRun = 3;    // neighbours that are told by the first and the last

/// What stands between the commas.
std::vector<std::string> runs_of(const std::vector<bool>& chosen,
                                 const std::vector<std::string>& names) {
  std::vector<std::string> runs;
  for (std::size_t begin = 0, end = 0; begin < chosen.size(); begin = end + 1) {
    for (end = begin; end < chosen.size() && chosen[end];) ++end;
    if (end - begin >= kRun) {
      runs.push_back(names[begin] + " to " + names[end - 1]);
    } else {
      runs.insert(runs.end(), names.begin() + static_cast<std::ptrdiff_t>(begin),
                  names.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  return runs;
}

}  // namespace

std::string unseen_targets(std::span<const std::int32_t> targets,
                           const std::vector<std::string>& target_names) {
  std::vector<bool> empty(target_names.size(), true);
  for (const std::int32_t target : targets) empty[static_cast<std::size_t>(target)] = false;
  const std::vector<std::string> runs = runs_of(empty, target_names);
  std::string text;
  for (std::size_t i = 0; i < runs.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + runs[i];
  if (runs.size() > kShown) text += " and " + std::to_string(runs.size() - kShown) + " more";
  return text;
}

}  // namespace ringlet::data
