#include "app/replay/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/report/axis.h"

namespace ringlet::app::replay {

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string time_text(double us) {
  if (us < 1e4) return report::with_digits(us, 4) + " \u00b5s";
  return report::with_digits(us / 1e3, 4) + " ms";
}

std::string ranges_of(std::span<const int> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    const char* separator = text.empty() ? "" : ", ";
    if (last > i + 1) {
      text += fmt::format("{}{}-{}", separator, numbers[i], numbers[last]);
    } else {
      text += fmt::format("{}{}", separator, numbers[i]);
      if (last == i + 1) text += fmt::format(", {}", numbers[last]);
    }
    i = last + 1;
  }
  return text;
}

std::string words_of(const comm::Counts& has) {
  std::vector<int> once;
  std::string more;
  for (std::size_t rank = 0; rank < has.size(); ++rank) {
    if (has[rank] == 1) once.push_back(static_cast<int>(rank));
    if (has[rank] == 2) more += fmt::format(", {} twice", rank);
    if (has[rank] > 2) more += fmt::format(", {} {} times", rank, has[rank]);
  }
  if (once.size() == has.size()) return "all";
  const std::string text = ranges_of(once) + more;
  if (text.empty()) return "nobody";
  return once.empty() ? text.substr(2) : text;
}

bool is_whole(const comm::Counts& has) {
  return std::all_of(has.begin(), has.end(), [](int count) { return count == 1; });
}

bool has_twice(const comm::Counts& has) {
  return std::any_of(has.begin(), has.end(), [](int count) { return count > 1; });
}

}  // namespace ringlet::app::replay
