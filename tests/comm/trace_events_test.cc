// Timelines: an arrow for each message, both ends within their spans, and what spans say.
#include "comm/report/trace_events.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/mesh.h"
#include "comm/schedule/recording.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

using nlohmann::json;

/// The events of what body(rank, stream) does on each rank.
template <class Body>
json events_of_ranks(int ranks, Body body) {
  std::vector<Tracer> tracers(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](int rank) {
    const auto device = in_place_device();
    device->communication().set_tracer(&tracers[static_cast<std::size_t>(rank)]);
    body(rank, device->communication());
  });
  TraceEvents events(0);
  for (int rank = 0; rank < ranks; ++rank) {
    events.add_names(rank, 2, "communication");
    for (const Span& span : tracers[static_cast<std::size_t>(rank)].spans()) {
      events.add_span(rank, 2, span);
    }
  }
  return json::parse("[" + std::string(events.text()) + "]");
}

/// The events of all-reduces of 1000 floats.
json events_of(const char* strategy, int ranks, int calls) {
  LocalGroup group(ranks);
  return events_of_ranks(ranks, [&](int rank, Stream& stream) {
    Communicator communicator(group.transport(rank), {.strategy = strategy});
    std::vector<float> data(1000);
    for (int call = 0; call < calls; ++call) {
      communicator.all_reduce(stream, view_of(data), "sum");
    }
  });
}

json parsed(TraceEvents& events) { return json::parse("[" + std::string(events.text()) + "]"); }

std::vector<json> of_phase(const json& events, const char* phase) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

/// Whether the event lies in an exchange of its rank, by the rules of the format.
bool lies_in_a_span(const json& event, const json& events) {
  const double at = event.at("ts");
  for (const json& span : of_phase(events, "X")) {
    if (span.at("pid") != event.at("pid") || span.at("tid") != event.at("tid")) continue;
    if (span.at("cat") != "exchange") continue;
    const double begin = span.at("ts"), end = begin + span.at("dur").get<double>();
    if (begin <= at && at < end) return true;
  }
  return false;
}

TEST(TraceEvents, HaveAnArrowForEachMessageOfEveryStrategy) {
  constexpr int kCalls = 2;
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    for (const int ranks : {2, 3, 4}) {
      const Network network = one_machine(ranks, {});
      if (!why_not_recorded(strategy, network).empty()) continue;
      const Schedule schedule = record(strategy.make, network, {.count = 1000});
      const std::int64_t messages = kCalls * totals_of(schedule).messages;
      const json events = events_of(strategy.name, ranks, kCalls);
      std::map<std::string, json> sent;
      for (const json& begin : of_phase(events, "s")) {
        EXPECT_TRUE(lies_in_a_span(begin, events)) << begin;
        EXPECT_TRUE(sent.emplace(begin.at("id"), begin).second) << "twice: " << begin;
        EXPECT_EQ(begin.at("id").get<std::string>().find_first_not_of("0123456789ABCDEF"),
                  std::string::npos);
      }
      EXPECT_EQ(std::ssize(sent), messages) << strategy.name << " on " << ranks;
      const std::vector<json> ends = of_phase(events, "f");
      EXPECT_EQ(std::ssize(ends), messages) << strategy.name << " on " << ranks;
      for (const json& end : ends) {
        EXPECT_TRUE(lies_in_a_span(end, events)) << end;
        ASSERT_TRUE(sent.contains(end.at("id"))) << end;
        const json& begin = sent.at(end.at("id"));
        EXPECT_EQ(begin.at("args"), end.at("args"));
        EXPECT_EQ(begin.at("name"), end.at("name"));
        EXPECT_EQ(begin.at("cat"), end.at("cat"));
        EXPECT_EQ(end.at("bp"), "e");
        EXPECT_LE(begin.at("ts"), end.at("ts"));
        const std::string between = "." + begin.at("pid").dump() + ">" + end.at("pid").dump() + ".";
        EXPECT_NE(end.at("args").at("message").get<std::string>().find(between), std::string::npos);
      }
    }
  }
}

TEST(TraceEvents, TellTheAxesOfAMeshApart) {
  LocalGroup group(4);
  const MeshGroup grid(group, {{"row", 2}, {"column", 2}});
  const json events = events_of_ranks(4, [&](int rank, Stream& stream) {
    Mesh mesh(grid, rank, {.strategy = "doubling"});
    std::vector<float> data(10);
    mesh.world().all_reduce(stream, view_of(data), "world");
    mesh.axis("row").all_reduce(stream, view_of(data), "row");
  });
  std::set<std::string> ids, axes;
  for (const json& begin : of_phase(events, "s")) {
    EXPECT_TRUE(ids.insert(begin.at("id")).second) << "twice: " << begin;
  }
  EXPECT_EQ(ids.size(), 8U + 4U);
  for (const json& span : of_phase(events, "X")) {
    if (span.at("cat") == "kernel") continue;
    EXPECT_EQ(span.at("args").at("call"), 1);
    axes.insert(span.at("args").value("axis", "world"));
  }
  EXPECT_EQ(axes, (std::set<std::string>{"world", "row"}));
}

TEST(TraceEvents, SayOfEachExchangeWhatItIs) {
  const json events = events_of("ring", 2, 1);
  int exchanges = 0, collectives = 0;
  for (const json& span : of_phase(events, "X")) {
    if (span.at("cat") == "collective") {
      EXPECT_EQ(
          span.at("args"),
          (json{{"bytes", 4000}, {"call", 1}, {"type", "f32"}, {"reduce", "sum"}, {"ranks", 2}}));
      ++collectives;
    } else if (span.at("cat") == "exchange") {
      const int rank = span.at("pid");
      const bool adds = span.at("args").at("op") == "add";
      const int mine = rank == 0 ? 2000 : 0;  // where the part begins that it gets whole
      EXPECT_EQ(span.at("args"), (json{{"bytes", 2000},
                                       {"peer", 1 - rank},
                                       {"call", 1},
                                       {"from", 1 - rank},
                                       {"out_at", adds ? 2000 - mine : mine},
                                       {"in_at", adds ? mine : 2000 - mine},
                                       {"in_bytes", 2000},
                                       {"op", adds ? "add" : "copy"}}));
      ++exchanges;
    }
  }
  EXPECT_EQ(exchanges, 4);
  EXPECT_EQ(collectives, 2);
}

TEST(TraceEvents, SayWhereRanksMeetAndWhoseMemoryTheyTouch) {
  for (const char* strategy : {"one-shot", "two-shot"}) {
    const json events = events_of(strategy, 4, 1);
    std::map<std::string, int> spans;
    for (const json& span : of_phase(events, "X")) {
      if (span.at("cat") != "exchange") continue;
      const std::string name = span.at("name");
      ++spans[name];
      const json& args = span.at("args");
      EXPECT_EQ(args.at("call"), 1);
      if (name != "direct") continue;
      const int rank = span.at("pid");
      const bool one = strategy == std::string("one-shot");
      EXPECT_EQ(args.at("begin"), one ? 0 : 1000 * rank);
      EXPECT_EQ(args.at("end"), one ? 4000 : 1000 * (rank + 1));
      EXPECT_EQ(args.at("of"), (json{0, 1, 2, 3}));
      EXPECT_EQ(args.at("into"), one ? (json{rank}) : (json{0, 1, 2, 3}));
      EXPECT_EQ(args.at("op"), "add");
    }
    EXPECT_EQ(spans["meet"], strategy == std::string("one-shot") ? 4 : 8);
    EXPECT_EQ(spans["direct"], 4);
    EXPECT_EQ(spans["copy"], strategy == std::string("one-shot") ? 4 : 0);
  }
}

TEST(TraceEvents, SayWhatFailedAndWhy) {
  LocalGroup group(2);
  std::vector<Tracer> tracers(2);
  messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    device->communication().set_tracer(&tracers[static_cast<std::size_t>(rank)]);
    Communicator communicator(group.transport(rank), {.strategy = "ring", .timeout_seconds = 20});
    std::vector<float> data(rank == 0 ? 10 : 20);
    communicator.all_reduce(device->communication(), view_of(data), "sum");
  });
  int errors = 0;
  for (Tracer& tracer : tracers) {
    TraceEvents events(0);
    for (const Span& span : tracer.spans()) events.add_span(0, 2, span);
    const json all = parsed(events);
    EXPECT_TRUE(of_phase(all, "f").empty()) << "nothing came";
    for (const json& span : of_phase(all, "X")) {
      EXPECT_EQ(span.at("args").at("failed"), true);
      errors += static_cast<int>(span.at("args").contains("error"));
    }
  }
  EXPECT_EQ(errors, 1) << "at the rank that it began with";

  TraceEvents both(0), one(0);
  for (int rank = 0; rank < 2; ++rank) {
    for (const Span& span : tracers[static_cast<std::size_t>(rank)].spans()) {
      both.add_span(rank, 2, span);
      if (rank == 0) one.add_span(rank, 2, span);
    }
  }
  EXPECT_TRUE(of_phase(parsed(both), "s").empty()) << "of what did not come, there is no arrow";
  EXPECT_EQ(of_phase(parsed(one), "s").size(), 1U) << "what another process knows";
}

}  // namespace
}  // namespace ringlet::comm
