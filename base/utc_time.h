// The time of day in files: "2026-01-31T09:05:00Z".
#pragma once

#include <string>

namespace ringlet {

/// Now, in UTC, to the second, as ISO 8601 writes it.
std::string utc_now();

}  // namespace ringlet
