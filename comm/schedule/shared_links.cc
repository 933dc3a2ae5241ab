#include "comm/schedule/shared_links.h"

#include <algorithm>
#include <tuple>

namespace ringlet::comm {

SharedLinks::SharedLinks(int machines, double seconds_per_byte)
    : seconds_per_byte_(seconds_per_byte),
      out_(static_cast<std::size_t>(machines)),
      in_(static_cast<std::size_t>(machines)) {}

/// Of two at one time the one of the smaller number comes first, so that each play is the same.
bool SharedLinks::Event::operator>(const Event& other) const {
  return std::tie(at_s, flow, turn) > std::tie(other.at_s, other.flow, other.turn);
}

void SharedLinks::add(const Message& message) {
  int number = static_cast<int>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  // The turn goes on, so that events of the number's last flow stay void.
  flow(number) = {.message = message, .left = message.bytes, .turn = flow(number).turn};
  events_.push({message.begin_s, number, 0});
}

std::optional<SharedLinks::Passed> SharedLinks::next() {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    Flow& passing = flow(event.flow);
    if (event.turn == 0) {
      passing.since_s = event.at_s;
      out_of(passing).push_back(event.flow);
      into(passing).push_back(event.flow);
    } else if (event.turn == passing.turn) {
      ++passing.turn;
      std::erase(out_of(passing), event.flow);
      std::erase(into(passing), event.flow);
    } else {
      continue;
    }
    share(out_of(passing), event.at_s);
    share(into(passing), event.at_s);
    if (event.turn == 0) continue;
    free_.push_back(event.flow);
    return Passed{passing.message, event.at_s};
  }
  return std::nullopt;
}

void SharedLinks::share(const Link& link, double now_s) {
  for (const int number : link) share(number, now_s);
}

/// Notes how far a flow has come, and foretells its end from its new share.
void SharedLinks::share(int number, double now_s) {
  Flow& passing = flow(number);
  const int share = static_cast<int>(std::max(out_of(passing).size(), into(passing).size()));
  if (share == passing.share) return;
  if (passing.share > 0 && seconds_per_byte_ > 0) {
    passing.left -= (now_s - passing.since_s) / (seconds_per_byte_ * passing.share);
    passing.left = std::max(passing.left, 0.0);
  }
  passing.since_s = now_s;
  passing.share = share;
  ++passing.turn;
  events_.push({now_s + passing.left * seconds_per_byte_ * share, number, passing.turn});
}

}  // namespace ringlet::comm
