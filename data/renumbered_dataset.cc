#include "data/renumbered_dataset.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace ringlet::data {

namespace {

DatasetInfo under_names(const Dataset& set, std::vector<std::string> names) {
  return {.name = set.name(),
          .channels = set.channels(),
          .height = set.height(),
          .width = set.width(),
          .target_names = std::move(names),
          .photographs = set.photographs(),
          .stop_requested = set.stop_requested()};
}

std::vector<std::int32_t> moved(std::span<const std::int32_t> targets,
                                const std::vector<std::int32_t>& indices) {
  std::vector<std::int32_t> moved;
  moved.reserve(targets.size());
  for (const std::int32_t target : targets) {
    moved.push_back(indices[static_cast<std::size_t>(target)]);
  }
  return moved;
}

}  // namespace

std::string comparable(const std::string& name) {
  const auto is_digit = [](char c) { return '0' <= c && c <= '9'; };
  if (name.empty() || !std::ranges::all_of(name, is_digit)) return name;
  return name.substr(std::min(name.find_first_not_of('0'), name.size() - 1));
}

namespace {

/// By `key` of each name. Nothing where two are alike in it; of two in `known` none is known.
template <class Key>
std::optional<std::vector<std::int32_t>> indices_by(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& known,
                                                    Key key) {
  constexpr std::int32_t kTwice = -1;
  std::unordered_map<std::string, std::int32_t> by_key;
  std::int32_t index = 0;
  for (const std::string& name : known) {
    const auto [entry, is_new] = by_key.emplace(key(name), index++);
    if (!is_new) entry->second = kTwice;
  }
  std::vector<std::int32_t> indices;
  for (const std::string& name : names) {
    const auto found = by_key.find(key(name));
    if (found == by_key.end() || found->second == kTwice) return {};
    indices.push_back(std::exchange(found->second, kTwice));
  }
  return indices;
}

}  // namespace

std::optional<std::vector<std::int32_t>> indices_of(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& known) {
  auto indices = indices_by(names, known, [](const std::string& name) { return name; });
  return indices ? indices : indices_by(names, known, comparable);
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 10;
  const std::size_t named = names.size() <= kNamed + 1 ? names.size() : kNamed;
  std::string text;
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + names[i];
  const std::size_t more = names.size() - named;
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

RenumberedDataset::RenumberedDataset(std::shared_ptr<const Dataset> source,
                                     std::vector<std::string> names,
                                     const std::vector<std::int32_t>& indices)
    : Dataset(under_names(*source, std::move(names)), moved(source->targets(), indices),
              {source->fields().begin(), source->fields().end()}),
      source_(std::move(source)) {}

}  // namespace ringlet::data
