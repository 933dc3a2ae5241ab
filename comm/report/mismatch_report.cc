#include "comm/report/mismatch_report.h"

#include <fmt/format.h>

namespace ringlet::comm {

namespace {

std::string place(const std::optional<CollectiveRecord>& latest) {
  if (!latest || !latest->inside()) return "an exchange outside of a collective";
  return fmt::format("{}, {} bytes", describe(*latest), latest->tag.bytes);
}

}  // namespace

std::string explain_mismatch(int from, std::int64_t sent_bytes,
                             const std::optional<CollectiveRecord>& sender, int to,
                             std::int64_t expected_bytes,
                             const std::optional<CollectiveRecord>& receiver) {
  return fmt::format(
      "rank {} sends {} bytes in {}, but rank {} expects {} bytes in {}; all ranks must start the "
      "same collectives in the same order",
      from, sent_bytes, place(sender), to, expected_bytes, place(receiver));
}

}  // namespace ringlet::comm
