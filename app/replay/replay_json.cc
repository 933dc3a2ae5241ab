#include "app/replay/replay_json.h"

#include <nlohmann/json.hpp>

namespace ringlet::app::replay {

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Replay& replay) {
  const TracedCall& call = *replay.call;
  ordered_json json = {{"name", call.name},
                       {"call", call.number},
                       {"ranks", call.size()},
                       {"world_ranks", call.members},
                       {"type", call.type},
                       {"op", call.op},
                       {"begin_us", call.begin_us},
                       {"end_us", call.end_us},
                       {"failed", call.failed},
                       {"stuck", replay.stuck},
                       {"steps", replay.steps},
                       {"messages", replay.totals.messages},
                       {"bytes", replay.totals.bytes},
                       {"busiest_bytes", replay.totals.busiest_bytes},
                       {"waited_us", replay.waited_us()},
                       {"parts", ordered_json::array()},
                       {"events", ordered_json::array()},
                       {"final", replay.final}};
  for (const PartRange& part : replay.parts) json["parts"].push_back({part.begin, part.end});
  for (const StateChange& change : replay.changes) {
    json["events"].push_back({{"t_us", change.at_us},
                              {"step", change.step},
                              {"rank", change.rank},
                              {"part", change.part},
                              {"has", change.has}});
  }
  return json;
}

}  // namespace

std::string to_json_text(const std::vector<Replay>& replays) {
  std::string text = "{\"calls\":[";
  const char* separator = "\n";
  for (const Replay& replay : replays) {
    text += separator + to_json(replay).dump(-1, ' ', true, ordered_json::error_handler_t::replace);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace ringlet::app::replay
