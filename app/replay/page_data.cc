#include "app/replay/page_data.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ringlet::app::replay {

namespace {

using nlohmann::json;

class Data {
 public:
  explicit Data(const Replay& replay) : replay_(replay), call_(*replay.call) {}

  json all() {
    const double time = shown_time();
    json data = {{"name", call_.name},
                 {"call", call_.number},
                 {"ranks", call_.size()},
                 {"failed", call_.failed},
                 {"stuck", replay_.stuck},
                 {"steps", replay_.steps},
                 {"time", time}};
    for (const char* key : {"parts", "flights", "changes", "stays", "whole", "stops"}) {
      data[key] = json::array();
    }
    for (const PartRange& part : replay_.parts) data["parts"].push_back({part.begin, part.end});
    for (const Flight& flight : replay_.flights) data["flights"].push_back(row_of(flight));
    for (const StateChange& change : replay_.changes) data["changes"].push_back(row_of(change));
    for (const Stay& stay : replay_.stays) data["stays"].push_back(row_of(stay, time));
    for (const TracedRank& rank : call_.ranks) add_rank(data, rank, time);
    data["has"] = json::array();
    for (const comm::Counts* counts : in_order()) data["has"].push_back(*counts);
    return data;
  }

 private:
  /// Microseconds since the call began, to the nanosecond.
  double at(double us) const { return std::round(1e3 * (us - call_.begin_us)) / 1e3; }

  /// Who hangs, hangs for a minute: that would leave no room for what came before.
  double shown_time() const {
    double last = 0;
    for (const Stay& stay : replay_.stays) {
      last = std::max(last, at(stay.failed ? stay.begin_us : stay.end_us));
    }
    const double whole = at(call_.end_us);
    return call_.failed && last > 0 ? std::min(whole, 1.3 * last) : std::max(whole, 1e-3);
  }

  json row_of(const Flight& flight) const {
    return {flight.from,
            flight.to,
            at(flight.offered_us),
            at(flight.begin_us),
            at(flight.end_us),
            flight.step,
            flight.bytes,
            flight.out_part,
            flight.in_part,
            flight.parts,
            static_cast<int>(flight.adds),
            flight.arrives ? flight.half : -1};
  }
  json row_of(const StateChange& change) {
    const auto [known, is_new] = numbers_.emplace(change.has, numbers_.size());
    return {at(change.at_us),
            change.step,
            change.rank,
            change.part,
            change.by,
            change.sender,
            static_cast<int>(change.adds),
            known->second};
  }
  json row_of(const Stay& stay, double time) const {
    const auto clipped = [&](double us) { return std::min(at(us), time); };
    return {stay.rank,
            stay.what,
            stay.to,
            stay.from,
            clipped(stay.begin_us),
            clipped(stay.came_us),
            clipped(stay.end_us),
            stay.step,
            static_cast<int>(stay.adds),
            static_cast<int>(stay.failed)};
  }

  /// When it came and went, and from when on it is known to be stuck.
  void add_rank(json& data, const TracedRank& rank, double time) const {
    if (!rank.whole) {
      data["whole"].push_back({time, time});
      data["stops"].push_back(0);
      return;
    }
    const double end = at(rank.whole->begin_us + rank.whole->duration_us);
    data["whole"].push_back({at(rank.whole->begin_us), std::min(end, time)});
    const bool hangs = !rank.steps.empty() && rank.steps.back().failed;
    data["stops"].push_back(std::min(hangs ? at(rank.steps.back().begin_us) : end, time));
  }

  std::vector<const comm::Counts*> in_order() const {
    std::vector<const comm::Counts*> counts(numbers_.size());
    for (const auto& [has, number] : numbers_) counts[number] = &has;
    return counts;
  }

  const Replay& replay_;
  const TracedCall& call_;
  std::map<comm::Counts, std::size_t> numbers_;  // each once
};

}  // namespace

json data_for_script(const Replay& replay) { return Data(replay).all(); }

}  // namespace ringlet::app::replay
