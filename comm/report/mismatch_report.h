// The message for the user when the two sides of an exchange do not match.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/report/flight_recorder.h"

namespace ringlet::comm {

/// "rank 0 sends 20 bytes in #3 all_reduce loss, 20 bytes, but rank 1 expects 12 bytes in ...".
/// Each side comes with the bytes of its message and the collective that it entered last.
std::string explain_mismatch(int from, std::int64_t sent_bytes,
                             const std::optional<CollectiveRecord>& sender, int to,
                             std::int64_t expected_bytes,
                             const std::optional<CollectiveRecord>& receiver);

}  // namespace ringlet::comm
