#include "comm/report/exchange_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/trace.h"
#include "comm/core/rank_text.h"

namespace ringlet::comm {

namespace {

double seconds_since(std::int64_t time_ns) {
  return static_cast<double>(now_ns() - time_ns) * 1e-9;
}

constexpr const char* kRemedy =
    "; look for what keeps it, or allow more time with --comm-timeout SECONDS";
constexpr const char* kCircleRemedy =
    "; let one of them begin with the other side, or send and receive in one exchange";

/// Where a rank is that has not come.
std::string whereabouts(int rank, const RankStatus& status) {
  std::string text;
  if (const Activity& activity = status.activity; activity.what != nullptr) {
    text = fmt::format("rank {} was last seen in \"{}\" {:.1f} s ago, ", rank, activity.what,
                       seconds_since(activity.since_ns));
  } else {
    text = fmt::format("rank {} was last seen ", rank);
  }
  if (!status.latest) return text + "before its first collective";
  const CollectiveRecord& latest = *status.latest;
  if (latest.inside()) return text + "still in " + describe(latest);
  return text + fmt::format("after {}, which it left {:.1f} s ago", describe(latest),
                            seconds_since(latest.left_ns));
}

/// Who does not answer has been named in full already (text_of_silent()).
std::string name_of(const Transport& transport, int peer, const StatusOfRanks& status) {
  const bool is_silent = !status[static_cast<std::size_t>(peer)];
  return is_silent ? text_of({peer}) : transport.names().of(peer);
}

/// " (activation of micro-batch 3)", if it is a message of a model in stages that this rank waits
/// for.
std::string text_of_message(const Transport& transport, int peer, const StatusOfRanks& status) {
  const auto& mine = status[static_cast<std::size_t>(transport.rank())];
  if (!mine || !mine->exchange) return "";
  const ExchangeRecord& exchange = *mine->exchange;
  std::string text;
  if (exchange.waits_to_receive() && exchange.from == peer && exchange.in.is_some()) {
    text = describe(exchange.in);
  }
  if (exchange.waits_to_send() && exchange.to == peer && exchange.out.is_some()) {
    text += (text.empty() ? "" : " and ") + describe(exchange.out);
  }
  return text.empty() ? text : " (" + text + ")";
}

/// The ranks, by how far they have come with one collective.
struct RankGroups {
  std::vector<int> missing;    // has not entered it, and is in no other one
  std::vector<int> stuck;      // has not entered it, since it waits in an earlier one
  std::vector<int> waiting;    // is in it
  std::vector<int> elsewhere;  // is in another one with the same number
  std::vector<int> left;       // has left it
};

RankGroups sort_ranks(const StatusOfRanks& status, const CollectiveTag& tag) {
  RankGroups groups;
  for (std::size_t i = 0; i < status.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (!status[i] || status[i]->unheard) continue;
    if (!status[i]->latest || status[i]->latest->tag.sequence < tag.sequence) {
      const bool waits = status[i]->latest && status[i]->latest->inside();
      (waits ? groups.stuck : groups.missing).push_back(rank);
    } else if (status[i]->latest->tag.sequence > tag.sequence || !status[i]->latest->inside()) {
      groups.left.push_back(rank);
    } else {
      (status[i]->latest->tag == tag ? groups.waiting : groups.elsewhere).push_back(rank);
    }
  }
  return groups;
}

std::string explain_exchange(const Transport& transport, int peer, const StatusOfRanks& status) {
  const auto& theirs = status[static_cast<std::size_t>(peer)];
  std::string text =
      fmt::format("{} waited {:g} s in an exchange with {}", transport.names().of(transport.rank()),
                  transport.timeout_seconds(),
                  name_of(transport, peer, status) + text_of_message(transport, peer, status));
  if (theirs && !theirs->unheard && !theirs->exchange)
    text += ", which did not come; " + whereabouts(peer, *theirs);
  return text;
}

/// What stands behind everything else: exchanges, the circle that ranks wait in, and what to do.
std::string explain_exchanges(const Transport& transport, const StatusOfRanks& status) {
  constexpr double kLongEnough = 1;  // seconds
  const double lasted = std::min(kLongEnough, transport.timeout_seconds() / 2);
  const std::string circle =
      find_wait_cycle(status, transport.rank(), static_cast<std::int64_t>(lasted * 1e9));
  if (circle.empty()) return text_of_exchanges(status) + kRemedy;
  return "; ranks wait in a circle, " + circle + text_of_exchanges(status) + kCircleRemedy;
}

/// Who is to blame that a collective does not come about, and the collective. Ranks that wait for
/// somebody themselves are not, unless there is nobody else. `lead` is what to say where every rank
/// has come, or who has not is known already.
std::string text_of_blame(const RankNames& names, const RankGroups& groups, bool is_known,
                          const std::string& lead, const std::string& what) {
  const std::vector<int>& blamed = groups.missing.empty() ? groups.stuck : groups.missing;
  if (is_known || blamed.empty()) return fmt::format("{} in {}", lead, what);
  return fmt::format("{} never entered {}", names.of(blamed), what);
}

std::string explain_collective(const RankNames& names, const StatusOfRanks& status,
                               const CollectiveRecord& mine, const std::string& lead) {
  const RankGroups groups = sort_ranks(status, mine.tag);
  const bool has_silent = std::find(status.begin(), status.end(), std::nullopt) != status.end();

  std::string text = text_of_blame(names, groups, has_silent, lead,
                                   fmt::format("{}, {} bytes", describe(mine), mine.tag.bytes));
  for (const std::vector<int>& ranks : {groups.missing, groups.stuck}) {
    for (const int rank : ranks) {
      text += "; " + whereabouts(rank, *status[static_cast<std::size_t>(rank)]);
    }
  }
  for (const int rank : groups.elsewhere) {
    const CollectiveRecord& other = *status[static_cast<std::size_t>(rank)]->latest;
    text += fmt::format("; rank {} is in {}, {} bytes", rank, describe(other), other.tag.bytes);
  }
  if (!groups.waiting.empty()) {
    text += fmt::format("; {} {} in #{}", text_of(groups.waiting),
                        groups.waiting.size() == 1 ? "waits" : "wait", mine.tag.sequence);
  }
  if (!groups.left.empty()) {
    text += fmt::format("; {} left it", text_of(groups.left));
  }
  return text;
}

std::string text_of_axis(const Line& line) {
  return line.axis.empty() ? "" : fmt::format("axis {} ({}): ", line.axis, text_of(line.ranks));
}

/// Where a side of an exchange stands.
std::string text_of_side(const std::optional<CollectiveRecord>& latest) {
  if (!latest || !latest->inside()) return "an exchange outside of a collective";
  if (is_message(latest->tag)) return "the " + describe(*latest);
  const std::string root = latest->tag.root < 0 ? "" : fmt::format(", root {}", latest->tag.root);
  return fmt::format("{}, {} bytes{}", describe(*latest), latest->tag.bytes, root);
}

}  // namespace

std::string text_of_silent(const Transport& transport, const StatusOfRanks& status) {
  std::vector<int> ranks, processes;
  for (std::size_t i = 0; i < status.size(); ++i) {
    if (status[i]) continue;
    const int rank = static_cast<int>(i), process = rank / transport.world().local_size;
    ranks.push_back(rank);
    if (processes.empty() || processes.back() != process) processes.push_back(process);
  }
  if (ranks.empty()) return {};
  return fmt::format("{} ({}) {} not answer, so {} stopped or {}: see ps; ",
                     transport.names().of(ranks), text_of_processes(processes),
                     ranks.size() == 1 ? "does" : "do",
                     processes.size() == 1 ? "its process is" : "their processes are",
                     processes.size() == 1 ? "hangs" : "hang");
}

std::string explain_timeout(Transport& transport, int peer) {
  const std::optional<CollectiveRecord> mine = transport.recorder().latest();
  const StatusOfRanks status = look_at_all(transport);
  const std::string lead =
      fmt::format("{} waited {:g} s for {}", transport.names().of(transport.rank()),
                  transport.timeout_seconds(), name_of(transport, peer, status));
  const std::string hosts = transport.hosts();
  return text_of_axis(transport.line()) + text_of_silent(transport, status) +
         (mine && mine->inside() ? explain_collective(transport.names(), status, *mine, lead)
                                 : explain_exchange(transport, peer, status)) +
         (hosts.empty() ? "" : "; " + hosts) + explain_exchanges(transport, status);
}

std::string explain_unfinished(Transport& transport) {
  const Transport& whole = transport.whole();
  const std::string lead = fmt::format("{} waited {:g} s for its device",
                                       whole.names().of(whole.rank()), transport.timeout_seconds());
  const std::optional<CollectiveRecord> mine = transport.recorder().latest();
  if (!mine) return text_of_axis(whole.line()) + lead + kRemedy;
  const StatusOfRanks status = look_at_all(whole);
  return text_of_axis(whole.line()) + text_of_silent(whole, status) +
         explain_collective(whole.names(), status, *mine, lead) + explain_exchanges(whole, status);
}

std::optional<CollectiveRecord> side_of(const CollectiveTag& tag,
                                        const std::optional<CollectiveRecord>& latest) {
  if (tag.sequence == 0) return {};
  CollectiveRecord side;
  if (latest && latest->tag == tag) side = *latest;
  side.tag = tag;
  side.left_ns = 0;  // its rank may have gone on since
  return side;
}

std::string explain_mismatch(int from, std::int64_t sent_bytes,
                             const std::optional<CollectiveRecord>& sender, int to,
                             std::int64_t expected_bytes,
                             const std::optional<CollectiveRecord>& receiver) {
  return fmt::format(
      "rank {} sends {} bytes in {}, but rank {} expects {} bytes in {}; all ranks must start the "
      "same collectives in the same order",
      from, sent_bytes, text_of_side(sender), to, expected_bytes, text_of_side(receiver));
}

std::string explain_end(Transport& transport, int peer) {
  const auto mine = transport.recorder().latest();
  return fmt::format(
      "{} has ended its work, and {} waits for it in {}; all ranks must make the same calls",
      transport.names().of(peer), transport.names().of(transport.rank()),
      mine && mine->inside() ? describe(*mine) : "an exchange");
}

std::string explain_parting(int rank, const CollectiveRecord& its, int other,
                            const CollectiveRecord& others) {
  return fmt::format(
      "rank {} is in {}, and rank {} waits for it in {}; all ranks must start the same collectives "
      "in the same order",
      rank, text_of_side(side_of(its.tag, its)), other, text_of_side(side_of(others.tag, others)));
}

}  // namespace ringlet::comm
