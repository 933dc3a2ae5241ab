// Traces read back: what the writer wrote, and what is no trace.
#include "train/telemetry/trace_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

std::vector<TraceSpan> parse(const std::string& text) {
  std::vector<TraceSpan> spans;
  parse_trace(text, "t.json", [&](const TraceSpan& span) { spans.push_back(span); });
  return spans;
}

std::string error(const std::string& text) {
  return message_of<FileError>([&] { parse(text); });
}

std::string with_events(const std::string& events) { return R"({"traceEvents":[)" + events + "]}"; }

TEST(TraceReader, ReadsWhatTheWriterWrote) {
  const testing::TemporaryDirectory folder;
  TraceWriter writer;
  {
    const auto device = open_device(DeviceId{});
    const TraceWriter::Recording recording(&writer, 3, *device);
    device->compute().tracer()->add("a \"quoted\" name", "kernel", 1000, 3500);
    device->communication().tracer()->add("ring", "collective", 2000, 4000, 512, 1);
  }
  writer.write(folder / "t.json");

  std::vector<TraceSpan> spans;
  const TraceNames names =
      read_trace(folder / "t.json", [&](const TraceSpan& span) { spans.push_back(span); });
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "a \"quoted\" name");
  EXPECT_EQ(spans[0].category, "kernel");
  EXPECT_EQ(spans[0].begin_us, 0);
  EXPECT_EQ(spans[0].duration_us, 2.5);
  EXPECT_EQ(spans[0].rank, 3);
  EXPECT_EQ(spans[0].stream, 1);
  EXPECT_EQ(spans[0].bytes, -1);
  EXPECT_EQ(spans[1].begin_us, 1);
  EXPECT_EQ(spans[1].bytes, 512);
  EXPECT_EQ(spans[1].peer, 1);
  EXPECT_EQ(names.ranks.at(3), "rank 3");
  EXPECT_EQ(names.streams.at({3, 2}), "communication");
}

TEST(TraceWriter, WritesWhatFailed) {
  const testing::TemporaryDirectory folder;
  TraceWriter trace;
  EXPECT_THROW(traced(&trace, folder / "t.json", {},
                      [&]() -> int {
                        const auto device = open_device({});
                        const TraceWriter::Recording recording(&trace, 0, *device);
                        const ScopedSpan span(device->compute().tracer(), "work", "phase");
                        throw ContractError("no");
                      }),
               ContractError);
  std::vector<TraceSpan> spans;
  read_trace(folder / "t.json", [&](const TraceSpan& span) { spans.push_back(span); });
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_TRUE(spans[0].failed);
  // That it cannot be written is not what is told.
  EXPECT_THROW(traced(&trace, folder / "no such folder" / "t.json", {},
                      []() -> int { throw ContractError("no"); }),
               ContractError);
  EXPECT_EQ(traced(nullptr, "", {}, [] { return 7; }), 7);
}

TEST(TraceReader, ReadsAllThatAnExchangeSays) {
  const testing::TemporaryDirectory folder;
  TraceWriter writer;
  {
    const auto device = open_device(DeviceId{});
    const TraceWriter::Recording recording(&writer, 1, *device);
    Span span;
    span.category = "exchange";
    span.peer = 2;
    span.failed = true;
    const ExchangeDetails details{.call = 7,
                                  .from = 3,
                                  .out_at = 10,
                                  .in_at = 20,
                                  .in_bytes = 5,
                                  .op = "add",
                                  .begin = 1,
                                  .end = 6,
                                  .of = {0, 3},
                                  .into = {2, 3},
                                  .type = "f32",
                                  .reduce = "mean",
                                  .ranks = 4,
                                  .error = "it \"broke\""};
    device->compute().tracer()->add(span, &details);
  }
  writer.write(folder / "t.json");
  std::vector<TraceSpan> spans;
  const TraceNames names =
      read_trace(folder / "t.json", [&](const TraceSpan& span) { spans.push_back(span); });
  ASSERT_EQ(spans.size(), 1U);
  const TraceSpan& span = spans[0];
  EXPECT_TRUE(span.failed);
  EXPECT_EQ(span.call, 7);
  EXPECT_EQ(span.from, 3);
  EXPECT_EQ(span.out_at, 10);
  EXPECT_EQ(span.in_at, 20);
  EXPECT_EQ(span.in_bytes, 5);
  EXPECT_EQ(span.op, "add");
  EXPECT_EQ(span.begin, 1);
  EXPECT_EQ(span.end, 6);
  EXPECT_EQ(span.of, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(span.into, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(span.type, "f32");
  EXPECT_EQ(span.reduce, "mean");
  EXPECT_EQ(span.ranks, 4);
  EXPECT_EQ(span.error, "it \"broke\"");
  EXPECT_FALSE(names.lacks_calls);
}

TEST(TraceReader, KnowsATraceOfAnEarlierVersion) {
  const auto lacks_calls = [](const std::string& args) {
    const std::string event =
        R"({"ph":"X","cat":"exchange","name":"send","ts":1,"dur":2,"args":{"bytes":4)" + args +
        "}}";
    return parse_trace(with_events(event), "t.json", [](const TraceSpan&) {}).lacks_calls;
  };
  EXPECT_TRUE(lacks_calls(""));
  EXPECT_FALSE(lacks_calls(R"(,"call":0)"));
}

TEST(TraceReader, PassesOverOtherEventsAndFields) {
  const auto spans = parse(
      R"({"meta":{"ts":1,"traceEvents":[9]},"traceEvents":[{"ph":"B","ts":1},7,[1],)"
      R"({"ph":"X","name":"n","ts":1,"dur":2,"id":{"ts":9},"args":{"x":{"bytes":5},"ts":7}}]})");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].begin_us, 1);
  EXPECT_EQ(spans[0].bytes, -1);
}

TEST(TraceReader, NamesTheEventThatIsWrong) {
  const std::string good = R"({"ph":"X","name":"n","ts":1,"dur":2})";
  EXPECT_TRUE(says(error(with_events(good + R"(,{"ph":"X","name":"n\n","dur":2})")),
                   {"t.json: event 2 'n\\n': 'ts' is missing"}));
  EXPECT_TRUE(says(error(with_events(R"({"ph":"X","ts":1,"dur":2})")), {"event 1", "'name'"}));
  EXPECT_TRUE(says(error(with_events(R"({"ph":"X","name":"n","ts":1,"dur":-2})")), {"negative"}));
  EXPECT_TRUE(says(error(with_events(good + "," + good.substr(0, 9))), {"event 2", "JSON"}));
  EXPECT_TRUE(says(error("{\"a\":1}"), {"t.json: there are no traceEvents"}));
  EXPECT_TRUE(says(error("[]"), {"is a list"}));
  EXPECT_TRUE(says(error("7"), {"no traceEvents"}));
  EXPECT_TRUE(says(error(""), {"JSON"}));
}

TEST(TraceReader, DoesNotFollowEveryDepth) {
  const std::string deep(100'000, '[');
  EXPECT_TRUE(says(error(with_events(deep)), {"event 1", "nested deeper than 16"}));
  EXPECT_TRUE(says(error("{\"a\":" + deep), {"nested deeper than 16"}));
}

TEST(TraceReader, SaysWhatIsNotThere) {
  EXPECT_TRUE(says(message_of<FileError>([] { read_trace("/no/such", [](const TraceSpan&) {}); }),
                   {"/no/such", "no such file"}));
}

}  // namespace
}  // namespace ringlet::train
