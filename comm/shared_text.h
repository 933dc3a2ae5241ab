// A text of any length that one process has, or makes on its own disk, and all shall have. It goes
// over the control plane in pieces that fit into a message, and its hash goes before them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/core/group.h"

namespace ringlet::comm {

/// Longest text, in bytes.
inline constexpr std::int64_t kLongestSharedText = std::int64_t{16} << 20;

/// Gives all processes the text that one of them brings as `mine`. All call this, as for
/// Group::agree(); `timeout_seconds` are for each piece. Throws as that does, and CommError for a
/// text that is too long or that has come with other bytes than were sent.
std::string share_text(Group& group, const std::string& key, const std::optional<std::string>& mine,
                       double timeout_seconds);

/// Runs `work` in the first process alone, and gives its text to all processes. They wait for it as
/// long as a slow disk takes, once the first process has come here. All call this, as for
/// Group::agree(); `what` is what the text is, for messages. `comm_timeout` in seconds. Throws as
/// share_text(), and what `work` throws.
std::string from_first(Group& group, const std::string& what, double comm_timeout,
                       const std::function<std::string()>& work);

}  // namespace ringlet::comm
