#include "app/commands/from_first.h"

#include <algorithm>
#include <optional>

#include "comm/shared_text.h"

namespace ringlet::app {

std::string from_first(comm::Group& group, const std::string& what, double comm_timeout,
                       const std::function<std::string()>& work) {
  constexpr double kSlowestDisk = 600;  // seconds
  const bool is_first = group.process() == 0;
  group.agree(what + " begins", is_first ? std::optional("") : std::nullopt, comm_timeout);
  return comm::share_text(group, what, is_first ? std::optional(work()) : std::nullopt,
                          std::max(kSlowestDisk, comm_timeout));
}

}  // namespace ringlet::app
