#include "comm/shared_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "comm/core/errors.h"
#include "comm/processes/message.h"

namespace ringlet::comm {

namespace {

constexpr std::size_t kTextPiece = Message::kLongest / 2;  // so that any key fits beside it

/// What goes before the pieces: "LENGTH HASH".
std::string summary_of(const std::string& text) {
  const auto length = static_cast<std::int64_t>(text.size());
  return fmt::format("{} {:016x}", length, hash_bytes(text.data(), text.size()));
}

/// Negative where it is none.
std::int64_t length_in(const std::string& summary) {
  std::int64_t length = -1;
  std::from_chars(summary.data(), summary.data() + summary.size(), length);
  return length;
}

}  // namespace

std::string share_text(Group& group, const std::string& key, const std::optional<std::string>& mine,
                       double timeout_seconds) {
  const auto part = [&mine](auto of) { return mine ? std::optional(of(*mine)) : std::nullopt; };
  const std::string summary = group.agree(key, part(summary_of), timeout_seconds);
  const std::int64_t length = length_in(summary);
  if (length < 0 || length > kLongestSharedText) {
    throw CommError(fmt::format(
        "the {} has {} bytes, and at most {} go to the other processes; let one process do it all",
        key, length, kLongestSharedText));
  }
  std::string text;
  while (std::ssize(text) < length) {
    const auto piece = [begin = text.size()](const std::string& all) {
      return all.substr(std::min(begin, all.size()), kTextPiece);
    };
    const std::string come =
        group.agree(fmt::format("{} from byte {}", key, text.size()), part(piece), timeout_seconds);
    if (come.empty()) break;
    text += come;
  }
  if (summary_of(text) == summary) return text;
  throw CommError(fmt::format(
      "the {} has come with other bytes than were sent; start the run again, and look at the "
      "network if that is no help",
      key));
}

std::string from_first(Group& group, const std::string& what, double comm_timeout,
                       const std::function<std::string()>& work) {
  if (group.processes() == 1) return work();
  constexpr double kSlowestDisk = 600;  // seconds
  const bool is_first = group.process() == 0;
  group.agree(what + " begins", is_first ? std::optional("") : std::nullopt, comm_timeout);
  return share_text(group, what, is_first ? std::optional(work()) : std::nullopt,
                    std::max(kSlowestDisk, comm_timeout));
}

}  // namespace ringlet::comm
