#include "comm/processes/obituary.h"

#include <fmt/format.h>

#include <vector>

namespace ringlet::comm {

std::string obituary(const Deceased& deceased, const RankNames::Words& names) {
  std::vector<int> ranks;
  for (int i = 0; i < deceased.replicas; ++i) {
    ranks.push_back(deceased.process * deceased.replicas + i);
  }
  const std::string pid = deceased.pid == 0 ? "" : fmt::format("pid {}, ", deceased.pid);
  const std::string who =
      fmt::format("process {}{} ({}{}", deceased.process,
                  deceased.host.empty() ? "" : " on " + deceased.host, pid, names(ranks));
  if (deceased.silent_seconds > 0) {
    return fmt::format(
        "{}) has not been heard of for {:g} s; it is stopped, or its machine or the link to it is "
        "down",
        who, deceased.silent_seconds);
  }
  if (deceased.host.empty()) return who + ") died; the system's log may say why (dmesg)";
  return who + ") died; the system's log there may say why (dmesg)";
}

}  // namespace ringlet::comm
