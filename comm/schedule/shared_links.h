// SharedLinks: the messages between machines, each of which passes its machine's outgoing link and
// the other one's incoming link. Those that pass a link at one time share it equally.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

namespace ringlet::comm {

class SharedLinks {
 public:
  SharedLinks(int machines, double seconds_per_byte);

  struct Message {
    int from = 0, to = 0;  ///< ranks
    int out_machine = 0, in_machine = 0;
    double bytes = 0;
    double begin_s = 0;  ///< not before what next() gave last
  };
  void add(const Message& message);

  struct Passed {
    Message message;
    double at_s = 0;
  };
  /// The next one that has passed; nothing where none is on its way.
  std::optional<Passed> next();

 private:
  struct Flow {
    Message message;
    double left = 0;         // bytes
    double since_s = 0;      // when `left` was so
    int share = 0;           // of how many it is one, on its fuller link
    std::uint32_t turn = 0;  // an event of an earlier turn is void
  };
  struct Event {
    double at_s;
    int flow;
    std::uint32_t turn;  // 0: it begins
    bool operator>(const Event& other) const;
  };
  using Link = std::vector<int>;  // the flows that pass it

  Flow& flow(int number) { return flows_[static_cast<std::size_t>(number)]; }
  Link& out_of(const Flow& flow) {
    return out_[static_cast<std::size_t>(flow.message.out_machine)];
  }
  Link& into(const Flow& flow) { return in_[static_cast<std::size_t>(flow.message.in_machine)]; }
  void share(const Link& link, double now_s);
  void share(int number, double now_s);

  double seconds_per_byte_;
  std::vector<Link> out_, in_;  // of each machine
  std::vector<Flow> flows_;
  std::vector<int> free_;  // numbers in flows_
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace ringlet::comm
