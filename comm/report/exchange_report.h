// What to tell the user when an exchange does not come about. When a rank has waited too long: not
// that it waited, but who is missing. When the two sides do not match: what each has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/core/flight_recorder.h"
#include "comm/core/transport.h"
#include "comm/report/wait_cycle.h"

namespace ringlet::comm {

/// One line, for the rank of `transport`, which waited for `peer` in the collective that its
/// recorder names, or in an exchange outside of one:
///   rank 2 never entered #812 all_reduce bucket 3 (fc1.weight), 516272 bytes;
///     rank 2 was last seen in "data loading" 12.1 s ago, after #811 all_reduce bucket 2;
///     ranks 0, 1 and 3 wait in #812; rank 0 sends 129068 bytes to rank 1 and ...
/// Whose process does not answer comes first, whatever axis it is of, since all others wait for it
/// in the end:
///   rank 2 (process 2) does not answer, so its process is stopped or hangs: see ps; rank 0 ...
/// Where ranks wait in a circle (wait_cycle.h), it says so too. Along an axis of a mesh it begins
/// with that: "axis stage (ranks 1 and 3): ".
/// In an exchange between stages of a model it says which message that is about:
///   rank 1 waited 60 s in an exchange with rank 0 (activation of micro-batch 2), which did not
///     come; rank 0 was last seen in "forward of micro-batch 2" 60 s ago, ...
std::string explain_timeout(Transport& transport, int peer);

/// The same where `peer` has ended (kAtItsEnd): "rank 0 has ended its work, and rank 1 waits for it
/// in #3 barrier; ...".
std::string explain_end(Transport& transport, int peer);

/// Whose process does not answer: "rank 2 (process 2) does not answer, so its process is stopped or
/// hangs: see ps; ". Empty where all do.
std::string text_of_silent(const Transport& transport, const StatusOfRanks& status);

/// As explain_timeout() for work that the rank has launched and its device has not finished.
std::string explain_unfinished(Transport& transport);

/// "rank 0 sends 20 bytes in #3 all_reduce loss, 20 bytes, but rank 1 expects 12 bytes in ...".
/// Each side comes with the bytes of its message and the collective that it entered last, or with
/// side_of() them.
std::string explain_mismatch(int from, std::int64_t sent_bytes,
                             const std::optional<CollectiveRecord>& sender, int to,
                             std::int64_t expected_bytes,
                             const std::optional<CollectiveRecord>& receiver);

/// The same of `other`, which waits for `rank`, while that is in another collective.
std::string explain_parting(int rank, const CollectiveRecord& its, int other,
                            const CollectiveRecord& others);

/// What a message is of by its tag: a message of a model in stages or a collective, whose name is
/// known where it is the `latest` one of its rank.
std::optional<CollectiveRecord> side_of(const CollectiveTag& tag,
                                        const std::optional<CollectiveRecord>& latest);

}  // namespace ringlet::comm
