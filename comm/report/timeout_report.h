// What to tell the user when a rank has waited too long: not that it waited, but who is missing.
#pragma once

#include <string>

#include "comm/transport.h"

namespace ringlet::comm {

/// One line, for the rank of `transport`, which waited for `peer` in the collective that its
/// recorder names, or in an exchange outside of one:
///   rank 2 never entered #812 all_reduce bucket 3 (fc1.weight), 516272 bytes;
///     rank 2 was last seen in "data loading" 12.1 s ago, after #811 all_reduce bucket 2;
///     ranks 0, 1 and 3 wait in #812
std::string explain_timeout(Transport& transport, int peer);

/// The same for work that the rank has launched and its device has not finished.
std::string explain_unfinished(Transport& transport);

}  // namespace ringlet::comm
