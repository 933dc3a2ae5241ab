#include "app/sweep/sweep_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace ringlet::app::sweep {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return {};
  return value;
}

void require_not_too_many(std::size_t runs) {
  if (runs <= kMaxRuns) return;
  throw SweepError(
      fmt::format("these are more than {} runs; sweep fewer values or seeds at once", kMaxRuns));
}

void require_different(const std::string& what, const std::vector<std::string>& values) {
  std::set<std::string> seen;
  for (const std::string& value : values) {
    if (!seen.insert(value).second) {
      throw SweepError(fmt::format("{} has {} twice; name each once", what, value));
    }
  }
}

/// The seeds from `first` to `last`, both included.
std::vector<std::string> seeds_between(std::uint64_t first, std::uint64_t last) {
  require_not_too_many(last - first);  // and one more, which plan_of() sees
  std::vector<std::string> seeds;
  for (std::uint64_t i = 0; i <= last - first; ++i) seeds.push_back(std::to_string(first + i));
  return seeds;
}

[[noreturn]] void refuse_seed(const std::string& word) {
  throw SweepError(fmt::format(
      "--seeds: '{}' is no whole number from 0 to 18446744073709551615; write 1,2,3 or 1..5",
      word));
}

/// What a folder's name can hold on any file system.
std::string as_file_name(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-:%@";
  std::string name = text;
  for (char& c : name) c = kPlain.find(c) == std::string_view::npos ? '_' : c;
  return name;
}

/// The runs' folders, which have to differ and to be short.
void name_folders(SweepPlan& plan) {
  constexpr std::size_t kLongest = 120;
  std::set<std::string> names;
  for (Run& run : plan.runs) {
    std::string name;
    for (std::size_t i = 0; i < plan.axes.size(); ++i) {
      name += plan.axes[i].key + "=" + as_file_name(plan.settings[run.setting][i]) + ",";
    }
    name += "seed=" + run.seed;
    if (name.size() > kLongest) name = fmt::format("setting={},seed={}", run.setting + 1, run.seed);
    if (!names.insert(name).second) name = fmt::format("{},{}", name, run.setting + 1);
    run.folder = name;
    names.insert(name);
  }
}

}  // namespace

std::vector<std::string> seeds_of(const std::string& text) {
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const auto first = number_in(text.substr(0, dots)), last = number_in(text.substr(dots + 2));
    if (!first || !last || *last < *first) refuse_seed(text);
    return seeds_between(*first, *last);
  }
  std::vector<std::string> seeds;
  for (const std::string& word : split(text, ',')) {
    const auto number = number_in(word);
    if (!number) refuse_seed(word);
    seeds.push_back(std::to_string(*number));
  }
  require_different("--seeds", seeds);
  return seeds;
}

Axis axis_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw SweepError(fmt::format("--sweep: '{}' is no flag with values; write lr=0.05,0.1", text));
  }
  Axis axis{text.substr(0, equals), {}};
  if (axis.key.starts_with("--")) axis.key.erase(0, 2);
  const std::string values = text.substr(equals + 1);
  axis.values = split(values, values.find(';') == std::string::npos ? ',' : ';');
  if (std::find(axis.values.begin(), axis.values.end(), "") != axis.values.end()) {
    throw SweepError(fmt::format("--sweep: '{}' has an empty value; write lr=0.05,0.1", text));
  }
  require_different("--sweep " + axis.key, axis.values);
  return axis;
}

SweepPlan plan_of(std::vector<Axis> axes, std::vector<std::string> seeds) {
  std::vector<std::string> keys;
  keys.reserve(axes.size());
  for (const Axis& axis : axes) keys.push_back(axis.key);
  require_different("--sweep", keys);
  SweepPlan plan{std::move(axes), std::move(seeds), {{}}, {}};
  for (const Axis& axis : plan.axes) {
    require_not_too_many(plan.settings.size() * axis.values.size());
    std::vector<std::vector<std::string>> longer;
    for (const auto& setting : plan.settings) {
      for (const std::string& value : axis.values) {
        longer.push_back(setting);
        longer.back().push_back(value);
      }
    }
    plan.settings = std::move(longer);
  }
  require_not_too_many(plan.settings.size() * plan.seeds.size());
  for (const std::string& seed : plan.seeds) {
    for (std::size_t i = 0; i < plan.settings.size(); ++i) plan.runs.push_back({i, seed, {}});
  }
  name_folders(plan);
  return plan;
}

std::string name_of(const SweepPlan& plan, std::size_t setting) {
  if (plan.axes.empty()) return "all";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < plan.axes.size(); ++i) {
    parts.push_back(plan.axes[i].key + " " + plan.settings[setting][i]);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string name_of(const SweepPlan& plan, const Run& run) {
  const std::string seed = "seed " + run.seed;
  return plan.axes.empty() ? seed : name_of(plan, run.setting) + ", " + seed;
}

}  // namespace ringlet::app::sweep
