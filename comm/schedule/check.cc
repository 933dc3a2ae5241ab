#include "comm/schedule/check.h"

#include <fmt/format.h>

#include "comm/core/rank_text.h"
#include "comm/report/wait_cycle.h"
#include "comm/schedule/walk.h"

namespace ringlet::comm {

namespace {

class Checker {
 public:
  explicit Checker(const Schedule& schedule) : schedule_(schedule), walk_(schedule, *this) {}

  Problem find() {
    walk_.begin();
    walk_.run();
    if (problem_.kind != Problem::Kind::none || walk_.has_ended()) return problem_;
    const StatusOfRanks status = look_at_all();
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      const std::string circle = find_wait_cycle(status, rank, 0);
      if (!circle.empty()) return {Problem::Kind::circle, circle};
    }
    return {Problem::Kind::unmatched, text_of_waits(status)};
  }

  void arrived(int /*rank*/) {}
  void touch(int /*rank*/, const Touch& /*touch*/) {}
  void meeting() {
    for (int rank = 1; rank < schedule_.size(); ++rank) {
      const std::string mine = shown_by(rank), first = shown_by(0);
      if (mine == first || problem_.kind != Problem::Kind::none) continue;
      problem_ = {Problem::Kind::unequal,
                  fmt::format("rank 0 shows {} where rank {} shows {} (step {} of rank 0, step {} "
                              "of rank {})",
                              first, rank, mine, number(0), number(rank), rank)};
    }
  }
  void message(int from, int to) {
    const std::int64_t sent = schedule_.out_bytes(walk_.step(from));
    const std::int64_t expected = schedule_.in_bytes(walk_.step(to));
    if (sent == expected || problem_.kind != Problem::Kind::none) {
      walk_.end_message(from, to);
      return;
    }
    problem_ = {
        Problem::Kind::unequal,
        fmt::format("rank {} sends {} bytes to rank {}, which expects {} (step {} of rank {}, step "
                    "{} of rank {})",
                    from, sent, to, expected, number(from), from, number(to), to)};
  }

 private:
  std::int64_t number(int rank) const { return schedule_.of(rank).own_number(walk_.number(rank)); }

  /// What the rank shows at its meeting, in words.
  std::string shown_by(int rank) const {
    const std::int32_t shown = walk_.step(rank).to;
    if (shown == kNobody) return "nothing";
    return fmt::format("{} bytes", schedule_.of(rank).shown[static_cast<std::size_t>(shown)].bytes);
  }

  /// As if the ranks were asked while they wait.
  StatusOfRanks look_at_all() const {
    StatusOfRanks status(schedule_.ranks.size());
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      auto& of_rank = status[static_cast<std::size_t>(rank)].emplace();
      if (walk_.has_ended(rank) || walk_.step(rank).kind != StepKind::exchange) continue;
      const Step& step = walk_.step(rank);
      const bool sends = walk_.waits_to_send(rank), receives = walk_.waits_to_receive(rank);
      of_rank.exchange =
          ExchangeRecord{.to = sends ? step.to : kNobody, .from = receives ? step.from : kNobody};
      if (sends) of_rank.exchange->out_bytes = schedule_.out_bytes(step);
      if (receives) of_rank.exchange->in_bytes = schedule_.in_bytes(step);
    }
    return status;
  }

  std::string text_of_waits(const StatusOfRanks& status) const {
    std::vector<int> ended, meeting;
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      if (walk_.has_ended(rank)) {
        ended.push_back(rank);
      } else if (walk_.step(rank).kind == StepKind::meeting) {
        meeting.push_back(rank);
      }
    }
    std::string text = text_of_exchanges(status);
    const auto add = [&text](const std::vector<int>& ranks, const char* one, const char* several) {
      if (!ranks.empty()) text += "; " + text_of(ranks) + (ranks.size() == 1 ? one : several);
    };
    add(meeting, " waits for all to meet", " wait for all to meet");
    add(ended, " has ended", " have ended");
    return text.substr(2);
  }

  const Schedule& schedule_;
  Walk<Checker> walk_;
  Problem problem_;
};

}  // namespace

Problem find_problem(const Schedule& schedule) { return Checker(schedule).find(); }

}  // namespace ringlet::comm
