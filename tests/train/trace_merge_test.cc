// Timelines of several processes become one, on the clock of process 0.
#include "train/telemetry/trace_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "train/telemetry/trace_reader.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

constexpr std::int64_t kMicrosecond = 1000;

/// Two processes whose spans "meet" are at the same time, 5 ms after process 0's "first". The clock
/// of process 1 is behind by 2 s, and falls behind by 1 us a ms.
class TwoClocks : public ::testing::Test {
 protected:
  TwoClocks() {
    write(0, "a", {{"first", 1'000'000'000}, {"meet", 1'005'000'000}},
          {{.at_ns = 1'000'000'000}, {.at_ns = 1'010'000'000}});
    // Its clock shows 10 us less than it should at the end, and half of that in the middle.
    write(1, "b", {{"meet", 1'005'000'000 - 2'000'000'000 + 5'000'000'000 - 5 * kMicrosecond}},
          {{.at_ns = 4'000'000'000, .ahead_ns = -3'000'000'000, .within_ns = 30 * kMicrosecond},
           {.at_ns = 4'009'990'000, .ahead_ns = -2'999'990'000, .within_ns = 40 * kMicrosecond}});
  }
  void write(int process, const std::string& host,
             const std::vector<std::pair<const char*, std::int64_t>>& spans,
             const std::vector<comm::ClockReading>& clock) const {
    TraceWriter writer;
    {
      const auto device = open_device(DeviceId{});
      const TraceWriter::Recording recording(&writer, process, *device);
      for (const auto& [name, begin] : spans) {
        device->compute().tracer()->add(name, "phase", begin, begin + 2500, 64, 1 - process);
      }
    }
    writer.write(file(process), {"a run", process, 2, host, clock});
  }
  std::filesystem::path file(int process) const {
    return folder_ / ("p" + std::to_string(process) + ".json");
  }
  std::string error(const std::vector<std::filesystem::path>& files) const {
    const std::string text = message_of<FileError>([&] { merge_traces(files, folder_ / "all"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "all"));
    return text;
  }
  testing::TemporaryDirectory folder_;
};

TEST_F(TwoClocks, BecomeOne) {
  const auto merged = merge_traces({file(1), file(0)}, folder_ / "all");
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].process, 0);
  EXPECT_EQ(merged[0].processes, 2);
  EXPECT_EQ(merged[0].within_us, 0);
  EXPECT_EQ(merged[1].host, "b");
  EXPECT_NEAR(merged[1].behind_us, -3e6, 0.5);
  EXPECT_NEAR(merged[1].within_us, 40, 1e-9);
  EXPECT_NEAR(merged[1].drift_ppm, 1001, 1);

  std::map<std::string, double> begins;
  const TraceNames names = read_trace(folder_ / "all", [&](const TraceSpan& span) {
    begins[span.name + std::to_string(span.rank)] = span.begin_us;
    EXPECT_EQ(span.duration_us, 2.5);
    EXPECT_EQ(span.bytes, 64);
    EXPECT_EQ(span.peer, 1 - span.rank);
  });
  EXPECT_EQ(begins.at("first0"), 0);
  EXPECT_NEAR(begins.at("meet0"), 5000, 0.002);
  EXPECT_NEAR(begins.at("meet1"), begins.at("meet0"), 0.02);
  EXPECT_EQ(names.ranks.at(0), "rank 0 on a");
  EXPECT_EQ(names.ranks.at(1), "rank 1 on b");
  EXPECT_EQ(names.streams.at({1, 2}), "communication");
}

/// Process 0 sends at 100 us; by its clock process 1 has received from 60 to 110 us, or 60 to 90.
TEST(TwoClocksOfAMessage, PutNoArrivalBeforeItsDeparture) {
  for (const std::int64_t end : {110, 90}) {
    const testing::TemporaryDirectory folder;
    const auto write = [&](int process, const Span& span, const ExchangeDetails& details) {
      TraceWriter writer;
      {
        const auto device = open_device(DeviceId{});
        const TraceWriter::Recording recording(&writer, process, *device);
        device->compute().tracer()->add("begin", "phase", 0, 1000);
        device->compute().tracer()->add(span, &details);
      }
      writer.write(folder / std::to_string(process), {"a run", process, 2, "a", {{}}});
    };
    Span sends, receives;
    sends.name = {"send"};
    receives.name = {"receive"};
    sends.category = receives.category = "exchange";
    sends.begin_ns = 100 * kMicrosecond;
    sends.end_ns = 150 * kMicrosecond;
    sends.peer = 1;
    receives.begin_ns = 60 * kMicrosecond;
    receives.end_ns = end * kMicrosecond;
    receives.peer = 0;
    write(0, sends, {.call = 1});
    write(1, receives, {.call = 1, .from = 0, .in_bytes = 4});
    merge_traces({folder / "0", folder / "1"}, folder / "all");
    const auto all = nlohmann::json::parse(testing::read_file(folder / "all"));
    std::map<std::string, double> times;
    double received = 0;
    for (const auto& event : all.at("traceEvents")) {
      if (event.contains("id")) times[event.at("ph")] = event.at("ts");
      if (event.at("name") != "receive") continue;
      received = event.at("ts").get<double>() + event.at("dur").get<double>();
    }
    EXPECT_LT(times.at("f"), received) << "it lies in its span";
    EXPECT_EQ(times.at("s"), 100);
    EXPECT_EQ(times.at("f"), end == 110 ? 109.999 : 100.001);
  }
}

TEST_F(TwoClocks, AreNotMixedUp) {
  const std::string mine = testing::read_file(file(1));
  EXPECT_TRUE(says(error({file(0), folder_ / "p0.json"}), {"p0.json", "both of process 0"}));
  EXPECT_TRUE(says(error({file(0), folder_ / "nowhere.json"}), {"nowhere.json"}));
  for (const char* foreign :
       {"", "{", "[1]", R"({"traceEvents":[)", R"({"otherData":{"process":0},"traceEvents":[)"}) {
    testing::write_file(file(1), foreign);
    EXPECT_TRUE(says(error({file(0), file(1)}), {"p1.json does not say which process"})) << foreign;
  }
  TraceWriter().write(file(1), {.run = "another", .process = 1, .processes = 2, .clock = {{}}});
  EXPECT_TRUE(says(error({file(1), file(0)}), {"p1.json and ", "p0.json are of two runs"}));
  TraceWriter().write(file(1), {.run = "a run", .process = 2, .processes = 2, .clock = {{}}});
  EXPECT_TRUE(says(error({file(0), file(1)}), {"p1.json: line 1 is no event", "damaged"}));
  TraceWriter().write(file(1));  // of one process, which has read no clock
  EXPECT_TRUE(says(error({file(0), file(1)}), {"p1.json does not say which process"}));
  for (std::size_t cut : {mine.size() - 4, mine.size() - 20}) {
    testing::write_file(file(1), mine.substr(0, cut));
    EXPECT_TRUE(says(error({file(0), file(1)}), {"p1.json: line ", "no event", "damaged"})) << cut;
  }
  std::string text = mine;
  testing::write_file(file(1), text.replace(text.find("\"name\":\"rank"), 6, "\"nome\""));
  EXPECT_TRUE(says(error({file(0), file(1)}), {"p1.json: a rank has no name"}));
}

}  // namespace
}  // namespace ringlet::train
