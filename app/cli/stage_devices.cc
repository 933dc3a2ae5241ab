#include "app/cli/stage_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "app/cli/error_exit.h"
#include "app/cli/usage.h"

namespace ringlet::app {

std::vector<DeviceId> devices_in(std::string_view text) {
  constexpr int kMost = 1024;
  const std::size_t dash = text.find('-');
  const DeviceId first = checked([&] { return DeviceId::parse(text.substr(0, dash)); });
  if (dash == std::string_view::npos) return {first};
  int last = -1;
  const auto [end, error] =
      std::from_chars(text.data() + dash + 1, text.data() + text.size(), last);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || last < first.index || last >= first.index + kMost) {
    throw UsageError(fmt::format(
        "--stages: '{}' is no devices; write one, or the first and the last as in cuda:0-3", text));
  }
  std::vector<DeviceId> devices;
  for (int index = first.index; index <= last; ++index) devices.push_back({first.kind, index});
  return devices;
}

std::vector<DeviceId> devices_in_stages(const std::string& stages) {
  std::vector<DeviceId> all;
  std::size_t of_first = 0;
  int stage = 0;
  for (std::size_t begin = 0; begin <= stages.size(); ++stage) {
    const std::size_t end = std::min(stages.find(',', begin), stages.size());
    const std::string_view item = std::string_view(stages).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t sign = item.find('=');
    if (sign == std::string_view::npos || sign + 1 == item.size()) continue;  // others complain
    const std::vector<DeviceId> own = devices_in(item.substr(sign + 1));
    if (all.empty()) of_first = own.size();
    if (own.size() != of_first) {
      throw UsageError(fmt::format(
          "--stages: stage 0 has {} of the devices and stage {} has {}; give each as many",
          of_first, stage, own.size()));
    }
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace ringlet::app
