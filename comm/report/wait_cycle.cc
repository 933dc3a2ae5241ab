#include "comm/report/wait_cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "comm/core/rank_text.h"

namespace ringlet::comm {

namespace {

/// A rank waits for its peer to take what it sends, or to send what it takes.
struct Wait {
  int rank;
  int peer;
  bool sends;
};

const RankStatus* in_exchange(const StatusOfRanks& status, int rank) {
  const auto& known = status[static_cast<std::size_t>(rank)];
  return known && known->exchange ? &*known : nullptr;
}

/// What `rank` waits for: peers that are in an exchange of which its own is not the other half.
/// Whether they still wait for that half does not matter: then the message is on its way.
std::vector<Wait> waits_of(const StatusOfRanks& status, int rank) {
  std::vector<Wait> waits;
  const RankStatus* mine = in_exchange(status, rank);
  if (mine == nullptr) return waits;
  const auto add = [&](int peer, bool sends, int ExchangeRecord::*other_half) {
    const RankStatus* theirs = in_exchange(status, peer);
    if (theirs != nullptr && (*theirs->exchange).*other_half != rank) {
      waits.push_back({rank, peer, sends});
    }
  };
  const ExchangeRecord& own = *mine->exchange;
  if (own.waits_to_send()) add(own.to, true, &ExchangeRecord::from);
  if (own.waits_to_receive()) add(own.from, false, &ExchangeRecord::to);
  return waits;
}

/// Goes along the waits, depth first, until it comes to a rank on its own way.
class CycleSearch {
 public:
  explicit CycleSearch(const StatusOfRanks& status)
      : status_(status), been_(status.size(), false) {}

  /// The circle; empty where there is none.
  std::vector<Wait> from(int rank) { return visit(rank) ? way_ : std::vector<Wait>(); }

 private:
  bool visit(int rank) {
    been_[static_cast<std::size_t>(rank)] = true;
    for (const Wait& wait : waits_of(status_, rank)) {
      const auto met = std::find_if(way_.begin(), way_.end(), [&wait](const Wait& before) {
        return before.rank == wait.peer;
      });
      const bool closes = met != way_.end() || wait.peer == rank;
      if (!closes && been_[static_cast<std::size_t>(wait.peer)]) continue;
      if (closes) way_.erase(way_.begin(), met);
      way_.push_back(wait);
      if (closes || visit(wait.peer)) return true;
      way_.pop_back();
    }
    return false;
  }

  const StatusOfRanks& status_;
  std::vector<bool> been_;
  std::vector<Wait> way_;
};

/// For how long all of them have been where they are, at least.
std::int64_t lasted(const StatusOfRanks& status, const std::vector<Wait>& circle) {
  std::int64_t entered = 0, seen = std::numeric_limits<std::int64_t>::max();
  for (const Wait& wait : circle) {
    const RankStatus& rank = *in_exchange(status, wait.rank);
    entered = std::max(entered, rank.exchange->entered_ns);
    seen = std::min(seen, rank.seen_ns);
  }
  return seen - entered;
}

const char* kind_of(const std::vector<Wait>& circle) {
  const auto sends = [](const Wait& wait) { return wait.sends; };
  if (std::all_of(circle.begin(), circle.end(), sends)) return "all send, none receives";
  if (std::none_of(circle.begin(), circle.end(), sends)) return "all receive, none sends";
  return "each waits for the next";
}

std::string text_of_exchange(int rank, const ExchangeRecord& exchange) {
  std::string text = fmt::format("; rank {}", rank);
  const bool sends = exchange.waits_to_send(), receives = exchange.waits_to_receive();
  const auto of = [](const MessageName& message) {
    return message.is_some() ? " (" + describe(message) + ")" : std::string();
  };
  if (sends) {
    text += fmt::format(" sends {} bytes to rank {}", exchange.out_bytes, exchange.to);
    text += of(exchange.out);
  }
  if (sends && receives) text += " and";
  if (receives) {
    text += fmt::format(" receives {} bytes from rank {}", exchange.in_bytes, exchange.from);
    text += of(exchange.in);
  }
  return text;
}

}  // namespace

StatusOfRanks look_at_all(const Transport& transport) {
  StatusOfRanks status;
  const Line& line = transport.line();
  for (int rank = 0; rank < transport.size(); ++rank) {
    const bool apart = !line.axis.empty() &&
                       std::find(line.ranks.begin(), line.ranks.end(), rank) == line.ranks.end();
    std::optional<RankStatus> one = transport.look_at(rank);
    // Whose process does not answer keeps all others in the end, whatever line it is of.
    if (apart && one) one = RankStatus{.unheard = true, .apart = true};
    status.push_back(one);
  }
  return status;
}

std::string find_wait_cycle(const StatusOfRanks& status, int rank, std::int64_t lasted_ns) {
  std::vector<Wait> circle = CycleSearch(status).from(rank);
  if (circle.empty() || lasted(status, circle) < lasted_ns) return "";
  std::rotate(circle.begin(),
              std::min_element(circle.begin(), circle.end(),
                               [](const Wait& a, const Wait& b) { return a.rank < b.rank; }),
              circle.end());
  std::string text;
  for (const Wait& wait : circle) text += fmt::format("{} -> ", wait.rank);
  return text + fmt::format("{}: {}", circle.front().rank, kind_of(circle));
}

std::string text_of_exchanges(const StatusOfRanks& status) {
  std::string text;
  std::vector<int> idle, unknown;
  for (int rank = 0; rank < static_cast<int>(status.size()); ++rank) {
    if (const RankStatus* known = in_exchange(status, rank)) {
      text += text_of_exchange(rank, *known->exchange);
    } else {
      const auto& other = status[static_cast<std::size_t>(rank)];
      if (other && other->apart) continue;
      (other && !other->unheard ? idle : unknown).push_back(rank);
    }
  }
  if (!idle.empty() && !text.empty()) {
    text += "; " + text_of(idle) + (idle.size() == 1 ? " is" : " are") + " in no exchange";
  }
  if (!unknown.empty()) text += "; nothing is known of " + text_of(unknown);
  return text;
}

}  // namespace ringlet::comm
