// Replays of real runs between threads, against what follows from the events alone; and traces that
// cannot be replayed.
#include "app/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/replay/replay_json.h"
#include "app/replay/replay_page.h"
#include "app/replay/still.h"
#include "base/files/file_error.h"
#include "comm/all_reduce/collectives.h"
#include "comm/all_reduce/strategies.h"
#include "comm/communicator.h"
#include "comm/mesh.h"
#include "comm/report/trace_events.h"
#include "comm/schedule/recording.h"
#include "comm/transport/local/local_transport.h"
#include "kernels/device.h"
#include "tests/support/files.h"

namespace ringlet::app::replay {
namespace {

using comm::Counts;
using nlohmann::json;
using testing::message_of;
using testing::says;
using testing::write_file;

constexpr std::int64_t kElement = 4;

/// What a beginner writes: everybody sends, and nobody is there to receive.
class SendsFirst final : public comm::AllReduce {
 public:
  static constexpr const char* kName = "sends first";
  static constexpr comm::Needs kNeeds = comm::Needs::nothing;
  static comm::PathCost path_cost(int ranks, double bytes) { return {1.0 * ranks, bytes, bytes}; }

  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override {
    transport().send(stream, (rank() + 1) % size(), data);
    transport().receive(stream, (rank() + size() - 1) % size(), data, comm::combine_of(op));
  }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override { return count; }
};

class ToOneAndBack final : public comm::AllReduce {
 public:
  static constexpr const char* kName = "to one and back";
  static constexpr comm::Needs kNeeds = comm::Needs::nothing;
  static comm::PathCost path_cost(int ranks, double bytes) { return {1.0 * ranks, bytes, bytes}; }

  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override {
    comm::reduce(transport(), stream, 1, data, op);
    comm::broadcast(transport(), stream, 1, data);
  }
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return {}; }
};

/// The trace of what body(rank, stream) does on each rank, which may fail.
template <class Body>
std::string trace_of_ranks(int ranks, Body body) {
  std::vector<Tracer> tracers(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto device = open_device(DeviceId{});
      Stream& stream = device->communication();
      stream.set_tracer(&tracers[static_cast<std::size_t>(rank)]);
      try {
        body(rank, stream);
      } catch (const std::exception&) {  // its trace says so
      }
      stream.set_tracer(nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  comm::TraceEvents events(0);
  for (int rank = 0; rank < ranks; ++rank) {
    events.add_names(rank, 2, "communication");
    for (const Span& span : tracers[static_cast<std::size_t>(rank)].spans()) {
      events.add_span(rank, 2, span);
    }
  }
  return "{\"traceEvents\":[" + std::string(events.text()) + "]}";
}

/// The same of body(communicator, stream).
template <class Body>
std::string trace_of(const std::string& strategy, int ranks, Body body, double timeout = 30) {
  comm::LocalGroup group(ranks);
  comm::Strategies strategies;
  strategies.add<SendsFirst>();
  strategies.add<ToOneAndBack>();
  return trace_of_ranks(ranks, [&](int rank, Stream& stream) {
    comm::Communicator communicator(
        group.transport(rank),
        {.strategy = strategy, .timeout_seconds = timeout, .strategies = strategies});
    body(communicator, stream);
    stream.synchronize();
  });
}

View view_of(std::vector<float>& data) {
  return {data.data(), {static_cast<std::int64_t>(data.size())}, DType::f32};
}

std::string trace_of_calls(const std::string& strategy, int ranks, std::int64_t count, int calls) {
  return trace_of(strategy, ranks, [=](comm::Communicator& communicator, Stream& stream) {
    std::vector<float> data(static_cast<std::size_t>(count));
    for (int call = 0; call < calls; ++call) {
      const std::string name = "call " + std::to_string(call);
      communicator.all_reduce(stream, view_of(data), name);
      stream.synchronize();  // the name must live until then
    }
  });
}

/// The replays of a trace's text.
class Replayed {
 public:
  explicit Replayed(const std::string& trace) {
    const testing::TemporaryDirectory folder;
    write_file(folder / "t.json", trace);
    run = read_calls(folder / "t.json");
    for (const TracedCall& call : run.calls) replays.push_back(replay_of(call));
  }
  json as_json() const { return json::parse(to_json_text(replays)); }

  TracedRun run;
  std::vector<Replay> replays;
};

/// What the events alone say of a call: an exchange sends what was there before it, and who adds up
/// memories finds in them what all ranks began with.
class Reconstruction {
 public:
  using State = std::vector<Counts>;                // of each element
  using Changes = std::map<std::pair<double, int>,  // when and where
                           std::map<std::int64_t, Counts>>;

  Reconstruction(const json& trace, std::int64_t call, int ranks, std::int64_t count)
      : steps_(static_cast<std::size_t>(ranks)), count_(count) {
    for (const json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X" || event.at("cat") != "exchange") continue;
      if (event.at("args").at("call") != call) continue;
      steps_[event.at("pid").get<std::size_t>()].push_back(event);
    }
    for (auto& steps : steps_) {
      std::stable_sort(steps.begin(), steps.end(),
                       [](const json& a, const json& b) { return a.at("ts") < b.at("ts"); });
    }
    for (std::size_t rank = 0; rank < steps_.size(); ++rank) {
      final.push_back(state_before(rank, 0));
      state_before(rank, steps_[rank].size());
    }
    for (const auto& [key, elements] : changes) {
      for (const auto& [element, has] : elements) {
        final[static_cast<std::size_t>(key.second)][static_cast<std::size_t>(element)] = has;
      }
    }
  }

  std::vector<State> final;
  Changes changes;

 private:
  static bool sends_to(const json& step, std::size_t rank) {
    return step.at("name") != "receive" &&
           step.at("args").value("peer", -1) == static_cast<int>(rank);
  }

  /// The step in which `from` sends what `rank` receives in its step `number`: messages between two
  /// ranks keep their order.
  std::size_t step_of_sender(std::size_t from, std::size_t rank, std::size_t number) const {
    const auto receives = [&](const json& step) {
      return step.at("args").value("from", -1) == static_cast<int>(from);
    };
    auto before = std::count_if(
        steps_[rank].begin(), steps_[rank].begin() + static_cast<std::ptrdiff_t>(number), receives);
    for (std::size_t i = 0;; ++i) {
      if (sends_to(steps_[from].at(i), rank) && before-- == 0) return i;
    }
  }

  const State& state_before(std::size_t rank, std::size_t number) {
    const auto key = std::pair(rank, number);
    if (const auto known = states_.find(key); known != states_.end()) return known->second;
    if (number == 0) {
      Counts own(steps_.size());
      own[rank] = 1;
      return states_[key] = State(static_cast<std::size_t>(count_), own);
    }
    State state = state_before(rank, number - 1);
    apply(state, rank, number - 1);
    return states_[key] = state;
  }

  void apply(State& state, std::size_t rank, std::size_t number) {
    const json& step = steps_[rank][number];
    const json& args = step.at("args");
    const double end = step.at("ts").get<double>() + step.at("dur").get<double>();
    if (step.at("name") == "direct") {  // of what all ranks began with
      const std::int64_t begin = args.value("begin", 0) / kElement;
      const std::int64_t last = args.value("end", 0) / kElement;
      for (const int into : args.at("into")) {
        for (std::int64_t i = begin; i < last; ++i) {
          changes[{end, into}][i] = Counts(steps_.size(), 1);
        }
      }
      return;
    }
    if (!args.contains("in_bytes") || args.at("in_bytes") == 0) return;
    const std::size_t from = args.at("from");
    const std::size_t theirs = step_of_sender(from, rank, number);
    const State sent = state_before(from, theirs);
    const std::int64_t out =
        steps_[from][theirs].at("args").at("out_at").get<std::int64_t>() / kElement;
    const std::int64_t in = args.at("in_at").get<std::int64_t>() / kElement;
    for (std::int64_t i = 0; i < args.at("in_bytes").get<std::int64_t>() / kElement; ++i) {
      Counts& here = state[static_cast<std::size_t>(in + i)];
      const Counts& there = sent[static_cast<std::size_t>(out + i)];
      for (std::size_t r = 0; r < here.size(); ++r) {
        here[r] = there[r] + (args.at("op") == "copy" ? 0 : here[r]);
      }
      changes[{end, static_cast<int>(rank)}][in + i] = here;
    }
  }

  std::vector<std::vector<json>> steps_;
  std::int64_t count_;
  std::map<std::pair<std::size_t, std::size_t>, State> states_;
};

/// The elements of a part.
std::pair<std::int64_t, std::int64_t> elements_of(const json& part) {
  return {part.at(0).get<std::int64_t>() / kElement, part.at(1).get<std::int64_t>() / kElement};
}

std::vector<Reconstruction::State> final_of(const json& call) {
  std::vector<Reconstruction::State> final;
  for (const json& rank : call.at("final")) {
    Reconstruction::State& state = final.emplace_back();
    for (std::size_t part = 0; part < rank.size(); ++part) {
      const auto [begin, end] = elements_of(call.at("parts").at(part));
      state.insert(state.end(), static_cast<std::size_t>(end - begin), rank.at(part).get<Counts>());
    }
  }
  return final;
}

/// By the nanosecond, as the trace writes times.
Reconstruction::Changes rounded(const Reconstruction::Changes& changes) {
  Reconstruction::Changes all;
  for (const auto& [key, elements] : changes) {
    for (const auto& [element, has] : elements) {
      all[{std::round(1e3 * key.first), key.second}][element] = has;
    }
  }
  return all;
}

Reconstruction::Changes changes_of(const json& call) {
  Reconstruction::Changes changes;
  for (const json& event : call.at("events")) {
    const auto [begin, end] = elements_of(call.at("parts").at(event.at("part").get<std::size_t>()));
    for (std::int64_t i = begin; i < end; ++i) {
      changes[{event.at("t_us"), event.at("rank")}][i] = event.at("has").get<Counts>();
    }
  }
  return changes;
}

TEST(Replay, SaysWhatTheEventsSayOfEveryStrategy) {
  const comm::Strategies strategies;
  for (const comm::Strategy& strategy : strategies.all()) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      if (!comm::why_not_recorded(strategy, comm::one_machine(ranks, {})).empty()) continue;
      const std::int64_t count = 3 * ranks + 1;
      const std::string trace = trace_of_calls(std::string(strategy.name), ranks, count, 2);
      const json calls = Replayed(trace).as_json().at("calls");
      ASSERT_EQ(calls.size(), 2U) << strategy.name << " on " << ranks;
      for (const json& call : calls) {
        const Reconstruction wanted(json::parse(trace), call.at("call"), ranks, count);
        EXPECT_EQ(final_of(call), wanted.final) << strategy.name << " on " << ranks;
        EXPECT_EQ(rounded(changes_of(call)), rounded(wanted.changes))
            << strategy.name << " on " << ranks;
        EXPECT_EQ(wanted.final,
                  std::vector(wanted.final.size(),
                              Reconstruction::State(static_cast<std::size_t>(count),
                                                    Counts(static_cast<std::size_t>(ranks), 1))));
      }
    }
  }
}

/// Where data are long, each rank reduces a part into rank 1's memory, and copies one from there.
TEST(Replay, FollowsAReductionToOneAndABroadcastThroughMemory) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kCount = 6000;
  const Replayed replayed(trace_of_calls(ToOneAndBack::kName, kRanks, kCount, 1));
  const json calls = replayed.as_json().at("calls");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(final_of(calls.at(0)),
            std::vector(kRanks, Reconstruction::State(kCount, Counts(kRanks, 1))));
  const Replay& replay = replayed.replays.at(0);
  // Into rank 1's memory the others write what they have reduced, and nobody what it had.
  EXPECT_EQ(std::count_if(replay.flights.begin(), replay.flights.end(),
                          [](const Flight& flight) { return flight.to == 1 && flight.half == 2; }),
            kRanks - 1);
}

TEST(Replay, NamesACallAndItsFigures) {
  const json call = Replayed(trace_of_calls("ring", 4, 100, 1)).as_json().at("calls").at(0);
  EXPECT_EQ(call.at("name"), "call 0");
  EXPECT_EQ(call.at("call"), 1);
  EXPECT_EQ(call.at("ranks"), 4);
  EXPECT_EQ(call.at("type"), "f32");
  EXPECT_EQ(call.at("op"), "sum");
  EXPECT_EQ(call.at("parts"), json::parse("[[0,100],[100,200],[200,300],[300,400]]"));
  EXPECT_EQ(call.at("steps"), 6);
  EXPECT_EQ(call.at("messages"), 24);
  EXPECT_EQ(call.at("bytes"), 2400);
  EXPECT_EQ(call.at("busiest_bytes"), 600);
  EXPECT_EQ(call.at("waited_us").size(), 4U);
}

TEST(Replay, CountsStepsByWhatDependsOnWhat) {
  const auto steps = [](const char* strategy) {
    return Replayed(trace_of_calls(strategy, 4, 8, 1)).replays.at(0).steps;
  };
  EXPECT_EQ(steps("naive"), 6) << "rank 0 receives three times, then sends three times";
  EXPECT_EQ(steps("doubling"), 2);
  EXPECT_EQ(steps("one-shot"), 3) << "it copies, meets and reduces";
}

TEST(Replay, ShowsWhereARunThatFailedStopped) {
  const std::string trace =
      trace_of("ring", 2, [](comm::Communicator& communicator, Stream& stream) {
        std::vector<float> data(communicator.rank() == 0 ? 10 : 20);
        communicator.all_reduce(stream, view_of(data), "unequal");
        stream.synchronize();
      });
  const Replayed replayed(trace);
  const Replay& replay = replayed.replays.at(0);
  EXPECT_TRUE(replay.call->failed);
  EXPECT_TRUE(replay.changes.empty()) << "nothing came";
  EXPECT_TRUE(says(replay.stuck, {"rank 0 sends 20 bytes to rank 1, which expects 40"}));
  EXPECT_TRUE(std::any_of(replay.stays.begin(), replay.stays.end(),
                          [](const Stay& stay) { return stay.failed; }));
  const std::string page = page_of("t.json", replayed.run, replayed.replays);
  EXPECT_NE(page.find("It failed."), std::string::npos);
  EXPECT_NE(page.find(replay.stuck), std::string::npos);
}

TEST(Replay, SaysWhichRanksWaitInACircle) {
  std::barrier all_are_here(3);
  const std::string trace = trace_of(
      "sends first", 3,
      [&](comm::Communicator& communicator, Stream& stream) {
        std::vector<float> data(1 << 20);  // no transport keeps so much of its own
        all_are_here.arrive_and_wait();
        communicator.all_reduce(stream, view_of(data), "stuck");
        stream.synchronize();
      },
      1);
  const Replayed replayed(trace);
  const std::string& stuck = replayed.replays.at(0).stuck;
  EXPECT_TRUE(says(stuck, {"all send, none receives"}));
}

TEST(Replay, ReadsNothingIntoAPageThatIsNotText) {
  Replayed replayed(trace_of_calls("ring", 2, 10, 1));
  replayed.run.calls[0].name = "</script><b>&";
  const std::string page = page_of("<i>.json", replayed.run, replayed.replays);
  EXPECT_EQ(page.find("<b>&"), std::string::npos);
  EXPECT_EQ(page.find("<i>.json"), std::string::npos);
}

TEST(Replay, DrawsStepsAsPictures) {
  const Replayed replayed(trace_of_calls("ring", 4, 100, 1));
  const auto count = [&](std::vector<int> steps, const std::string& what) {
    const std::string svg = still_of(replayed.replays[0], std::move(steps));
    int found = 0;
    for (std::size_t at = 0; (at = svg.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count({1, 3}, "class=\"panel\""), 2);
  EXPECT_EQ(count({1, 3}, "class=\"cell\""), 2 * 16);
  EXPECT_EQ(count({1, 3}, "class=\"message\""), 2 * 4);
  EXPECT_EQ(count({}, "class=\"panel\""), 7);
  EXPECT_EQ(count({6}, "<title>all</title>"), 16);
  EXPECT_EQ(count({0}, "class=\"message\""), 0);
}

TEST(Replay, TellsCallsOfPartsOfTheWorldApart) {
  comm::LocalGroup group(4);
  const comm::MeshGroup grid(group, {{"row", 2}, {"column", 2}});
  const Replayed replayed(trace_of_ranks(4, [&](int rank, Stream& stream) {
    comm::Mesh mesh(grid, rank, {.strategy = "ring"});
    std::vector<float> data(10);
    mesh.axis("row").all_reduce(stream, view_of(data), "row");
    mesh.axis("column").all_reduce(stream, view_of(data), "column");
    mesh.world().all_reduce(stream, view_of(data), "world");
    stream.synchronize();
  }));
  std::multiset<std::string> texts;
  for (const Replay& replay : replayed.replays) {
    texts.insert(replay.call->text());
    const auto count = static_cast<std::size_t>(replay.ranks());
    for (const auto& parts : replay.final) {
      for (const Counts& has : parts) EXPECT_EQ(has, Counts(count, 1));
    }
  }
  EXPECT_EQ(texts, (std::multiset<std::string>{"call 1, 'column' of the world's ranks 0, 1",
                                               "call 1, 'column' of the world's ranks 2, 3",
                                               "call 1, 'row' of the world's ranks 0, 2",
                                               "call 1, 'row' of the world's ranks 1, 3",
                                               "call 1, 'world'"}));
}

// ---- what cannot be replayed

class NoReplay : public ::testing::Test {
 protected:
  std::string error(const json& trace) const { return error_of_text(trace.dump()); }
  std::string error_of_text(const std::string& text) const {
    const testing::TemporaryDirectory folder;
    write_file(folder / "t.json", text);
    return message_of<FileError>([&] {
      const TracedRun run = read_calls(folder / "t.json");
      for (const TracedCall& call : run.calls) replay_of(call);
    });
  }
  /// Changes each exchange of the rank's.
  void change(int rank, const std::function<void(json&)>& body) {
    for (json& event : trace_["traceEvents"]) {
      if (event["ph"] == "X" && event["pid"] == rank && event["cat"] == "exchange") body(event);
    }
  }
  void remove_if(const std::function<bool(const json&)>& is) {
    json left = json::array();
    for (const json& event : trace_["traceEvents"]) {
      if (!is(event)) left.push_back(event);
    }
    trace_["traceEvents"] = left;
  }

  json trace_ = json::parse(trace_of_calls("ring", 2, 10, 1));
};

TEST_F(NoReplay, WithoutAnExchange) {
  remove_if([](const json& event) { return event.value("cat", "") == "exchange"; });
  EXPECT_TRUE(says(error(trace_), {"t.json", "no all-reduce", "bench all-reduce --trace"}));
}

TEST_F(NoReplay, OfAnEarlierVersion) {
  change(0, [](json& event) { event["args"].erase("call"); });
  EXPECT_TRUE(says(error(trace_), {"t.json", "earlier version", "trace it again"}));
}

TEST_F(NoReplay, WithoutARank) {
  remove_if([](const json& event) { return event["pid"] == 1; });
  EXPECT_TRUE(says(error(trace_), {"t.json", "lacks rank 1 of 2", "ringlet trace merge"}));
}

TEST_F(NoReplay, OfTooManyRanks) {
  for (json& event : trace_["traceEvents"]) {
    if (event["cat"] == "collective") event["args"]["ranks"] = 65;
  }
  EXPECT_TRUE(says(error(trace_), {"t.json", "65 ranks", "up to 64"}));
}

TEST_F(NoReplay, WithAMessageThatHasNoPartner) {
  int steps = 0;
  remove_if([&](const json& event) {
    return event["ph"] == "X" && event["pid"] == 1 && event["cat"] == "exchange" && ++steps == 2;
  });
  EXPECT_TRUE(says(error(trace_), {"call 1, 'call 0'", "no partner", "rank 1 has ended"}));
}

TEST_F(NoReplay, WhereTimesRunBackwards) {
  change(1, [](json& event) { event["dur"] = 1e9; });
  for (json& event : trace_["traceEvents"]) {
    if (event["cat"] == "collective") event["dur"] = 2e9;
  }
  EXPECT_TRUE(says(error(trace_), {"t.json", "times that run backwards", "rank 1", "step 2"}));
}

TEST_F(NoReplay, WhereAMessageCameBeforeItLeft) {
  for (json& event : trace_["traceEvents"]) {
    if (event["pid"] == 1 && event.contains("ts")) event["ts"] = event["ts"].get<double>() + 1e6;
  }
  EXPECT_TRUE(says(error(trace_), {"times run backwards", "rank 0", "rank 1"}));
}

TEST_F(NoReplay, WithOffsetsBeyondTheData) {
  change(0, [](json& event) { event["args"]["in_at"] = std::int64_t{1} << 60; });
  EXPECT_TRUE(says(error(trace_), {"rank 0", "damaged"}));
}

TEST_F(NoReplay, OfNumbersThatAreNone) {
  change(0, [](json& event) { event["ts"] = "NaN"; });
  EXPECT_TRUE(says(error(trace_), {"t.json", "ts", "not a number"}));
  EXPECT_TRUE(says(error_of_text(R"({"traceEvents":[{"ph":"X","name":"x","ts":NaN,"dur":1}]})"),
                   {"t.json"}));
}

TEST_F(NoReplay, OfAGigabyte) {
  const testing::TemporaryDirectory folder;
  write_file(folder / "t.json", "{");
  std::filesystem::resize_file(folder / "t.json", std::uintmax_t{1} << 30);
  EXPECT_TRUE(says(message_of<FileError>([&] { read_calls(folder / "t.json"); }),
                   {"t.json", "1024 MB", "256"}));
}

}  // namespace
}  // namespace ringlet::app::replay
