#include "train/recipe/stage_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/error.h"

namespace ringlet::train {

namespace {

constexpr int kMostStages = 1024;

/// Nothing where the text is no whole number; 0 where it is one that no int holds.
std::optional<int> number_in(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size();
  if (!whole || error == std::errc::invalid_argument) return {};
  return error == std::errc() ? number : 0;
}

}  // namespace

bool is_stage_count(const std::string& stages) { return number_in(stages).has_value(); }

int stages_in(const std::string& stages) {
  const auto number = number_in(stages);
  if (!number) return static_cast<int>(std::count(stages.begin(), stages.end(), ',')) + 1;
  if (*number < 1 || *number > kMostStages) {
    throw ContractError(fmt::format(
        "--stages {}: a model is cut into 1 to {} stages; ask for so many", stages, kMostStages));
  }
  return *number;
}

int replicas_in(int world, const Execution& execution) {
  const int stages = stages_in(execution.stages);
  if (world % stages == 0) return world / stages;
  throw ContractError(
      fmt::format("--stages {}: {} devices are no multiple of {} stages; give each stage as many",
                  execution.stages, world, stages));
}

bool mixes_kinds(const Execution& execution) {
  const auto& devices = execution.devices;
  return std::any_of(devices.begin(), devices.end(), [&devices](const DeviceId& device) {
    return device.kind != devices.front().kind;
  });
}

}  // namespace ringlet::train
