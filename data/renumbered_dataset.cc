#include "data/renumbered_dataset.h"

#include <algorithm>
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

std::optional<std::vector<std::int32_t>> indices_of(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& known) {
  std::vector<std::int32_t> indices;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) return {};
    indices.push_back(static_cast<std::int32_t>(found - known.begin()));
  }
  return indices;
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
