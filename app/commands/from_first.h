// What one process does for all, on its own disk.
#pragma once

#include <functional>
#include <string>

#include "comm/group.h"

namespace ringlet::app {

/// Runs `work` in the first process alone, and gives its text to all processes. They wait for it as
/// long as a slow disk takes, once the first process has come here. All call this, as for
/// Group::agree(); `what` is what the text is, for messages. `comm_timeout` in seconds. Throws as
/// comm::share_text(), and what `work` throws.
std::string from_first(comm::Group& group, const std::string& what, double comm_timeout,
                       const std::function<std::string()>& work);

}  // namespace ringlet::app
