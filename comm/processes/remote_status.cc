#include "comm/processes/remote_status.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ringlet::comm {

namespace {

// A living process answers within microseconds, or when a busy machine lets it.
constexpr double kAnswerSeconds = 1;
constexpr std::chrono::milliseconds kFresh(200);  // one report asks for every rank once

/// One rank on the wire; the activity's name follows.
struct Entry {
  CollectiveRecord latest;
  bool has_latest = false;
  bool has_activity = false;
  bool has_exchange = false;
  ExchangeRecord exchange;
  std::int64_t worked_ns = 0;
  std::int64_t seen_ns = 0;
  std::int64_t since_ns = 0;
  std::uint32_t name_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<Entry>);

/// Adds `by` to all times that are set.
void move_clock(Entry& entry, std::int64_t by) {
  for (std::int64_t* time :
       {&entry.latest.entered_ns, &entry.latest.left_ns, &entry.exchange.entered_ns,
        &entry.worked_ns, &entry.seen_ns, &entry.since_ns}) {
    if (*time != 0) *time += by;
  }
}

}  // namespace

std::string encode(const std::vector<RankStatus>& status) {
  std::string text;
  for (const RankStatus& rank : status) {
    const std::string name = rank.activity.what == nullptr ? "" : rank.activity.what;
    Entry entry;
    entry.has_latest = rank.latest.has_value();
    if (rank.latest) entry.latest = *rank.latest;
    entry.has_activity = rank.activity.what != nullptr;
    entry.has_exchange = rank.exchange.has_value();
    if (rank.exchange) entry.exchange = *rank.exchange;
    entry.worked_ns = rank.worked_ns;
    entry.seen_ns = rank.seen_ns;
    entry.since_ns = rank.activity.since_ns;
    entry.name_bytes = static_cast<std::uint32_t>(name.size());
    text.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    text += name;
  }
  return text;
}

std::optional<RankStatus> RemoteStatus::of(int rank, int channel) {
  const std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() - asked_ > kFresh) refresh();
  const auto process = static_cast<std::size_t>(rank / replicas_);
  if (process >= of_process_.size()) return std::nullopt;
  const auto& ranks = of_process_[process];
  const auto local = static_cast<std::size_t>(rank % replicas_);
  if (!ranks[local] || ranks[local]->unheard) return ranks[local];
  const auto index = static_cast<std::size_t>(channel * replicas_) + local;
  return index < ranks.size() ? ranks[index] : RankStatus{};  // it has yet to open the channel
}

void RemoteStatus::refresh() {
  of_process_.clear();
  const std::vector<std::string> answers = rendezvous_.ask_status(kAnswerSeconds);
  const std::vector<Site>& sites = rendezvous_.sites();
  const auto own = static_cast<std::size_t>(rendezvous_.position().process);
  const int machine = sites[own].machine;
  const bool hub_is_silent = answers[own].empty();  // process 0 passes on what the others say
  for (std::size_t process = 0; process < answers.size(); ++process) {
    const bool elsewhere = sites[process].machine != machine;
    std::vector<std::optional<RankStatus>> ranks = decode(answers[process], elsewhere);
    const bool unheard = hub_is_silent && process > 0;
    const auto least = std::max(ranks.size(), static_cast<std::size_t>(replicas_));
    ranks.resize(least,  // of no answer: nothing
                 unheard ? std::optional(RankStatus{.unheard = true}) : std::nullopt);
    of_process_.push_back(std::move(ranks));
  }
  asked_ = std::chrono::steady_clock::now();
}

std::vector<std::optional<RankStatus>> RemoteStatus::decode(const std::string& answer,
                                                            bool from_elsewhere) {
  std::vector<std::optional<RankStatus>> ranks;
  for (std::size_t at = 0; at + sizeof(Entry) <= answer.size();) {
    Entry entry;
    std::memcpy(&entry, answer.data() + at, sizeof entry);
    at += sizeof entry;
    if (from_elsewhere) move_clock(entry, now_ns() - entry.seen_ns);
    RankStatus& rank = ranks.emplace_back().emplace();
    if (entry.has_latest) rank.latest = entry.latest;
    if (entry.has_exchange) rank.exchange = entry.exchange;
    rank.worked_ns = entry.worked_ns;
    rank.seen_ns = entry.seen_ns;
    rank.activity.since_ns = entry.since_ns;
    if (entry.has_activity) {
      rank.activity.what = activities_.insert(answer.substr(at, entry.name_bytes)).first->c_str();
    }
    at += entry.name_bytes;
  }
  return ranks;
}

}  // namespace ringlet::comm
