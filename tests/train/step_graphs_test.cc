// When a step runs eagerly, is captured and is replayed, on a stream that only notes what it is
// asked.
#include "train/loop/step_graphs.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/meta_device.h"

namespace ringlet::train {
namespace {

class NotedGraph : public Graph {
 public:
  explicit NotedGraph(int which) : number(which) {}
  int number;
};

class CapturingStream : public MetaStream {
 public:
  using MetaStream::MetaStream;
  bool can_capture() const override { return true; }
  void begin_capture() override { log.emplace_back("capture"); }
  std::unique_ptr<Graph> end_capture() override {
    if (refuses) throw DeviceError("no");
    log.emplace_back("captured " + std::to_string(++graphs_));
    return std::make_unique<NotedGraph>(graphs_);
  }
  void launch(Graph& graph) override {
    log.emplace_back("launch " + std::to_string(static_cast<NotedGraph&>(graph).number));
  }
  std::vector<std::string> log;
  bool refuses = false;

 private:
  int graphs_ = 0;
};

class StepGraphsTest : public ::testing::Test {
 protected:
  std::vector<std::string> run(StepGraphs& graphs, std::int64_t samples, bool repeatable = true) {
    stream_.log.clear();
    graphs.run(
        samples, [this] { stream_.log.emplace_back("enqueue"); },
        [repeatable] { return repeatable; },
        [this](bool is_new) { stream_.log.emplace_back(is_new ? "new" : "again"); },
        [this](const std::string& why) { stream_.log.emplace_back("refused: " + why); });
    return stream_.log;
  }
  using Log = std::vector<std::string>;
  MetaDevice device_;
  CapturingStream stream_{device_, "compute"};
};

TEST_F(StepGraphsTest, RunOnceEagerlyThenCaptureThenReplay) {
  StepGraphs graphs(stream_, true);
  EXPECT_EQ(run(graphs, 256), Log{"enqueue"});
  EXPECT_EQ(run(graphs, 256), (Log{"capture", "enqueue", "captured 1", "launch 1", "new"}));
  EXPECT_EQ(run(graphs, 256), (Log{"launch 1", "again"}));
  EXPECT_EQ(run(graphs, 256), (Log{"launch 1", "again"}));
}

TEST_F(StepGraphsTest, AShortLastBatchHasItsOwnGraph) {
  StepGraphs graphs(stream_, true);
  run(graphs, 256);
  EXPECT_EQ(run(graphs, 96), Log{"enqueue"});
  EXPECT_EQ(run(graphs, 256), (Log{"capture", "enqueue", "captured 1", "launch 1", "new"}));
  EXPECT_EQ(run(graphs, 96), (Log{"capture", "enqueue", "captured 2", "launch 2", "new"}));
  EXPECT_EQ(run(graphs, 256), (Log{"launch 1", "again"}));
  EXPECT_EQ(run(graphs, 96), (Log{"launch 2", "again"}));
}

TEST_F(StepGraphsTest, WhatDependsOnTheHostIsNeverReplayed) {
  StepGraphs graphs(stream_, true);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(run(graphs, 256, false), Log{"enqueue"});
}

TEST_F(StepGraphsTest, ACaptureThatBreaksIsEnded) {
  StepGraphs graphs(stream_, true);
  run(graphs, 256);
  stream_.log.clear();
  const auto fail = [] { throw std::runtime_error("no batch"); };
  const auto launched = [](bool) { FAIL() << "nothing was launched"; };
  const auto refused = [](const std::string&) { FAIL() << "it was not the device"; };
  EXPECT_THROW(graphs.run(
                   256, fail, [] { return true; }, launched, refused),
               std::runtime_error);
  EXPECT_EQ(stream_.log, (Log{"capture", "captured 1"}));
  EXPECT_EQ(run(graphs, 256), (Log{"capture", "enqueue", "captured 2", "launch 2", "new"}));
}

/// Notes when a transport hears of a capture.
class NotedCaptures : public comm::Captures {
 public:
  explicit NotedCaptures(std::vector<std::string>& log) : log_(log) {}
  void capture_begins() override { log_.emplace_back("begins"); }
  void capture_ends() noexcept override { log_.emplace_back("ends"); }
  void graph_launched() override {}

 private:
  std::vector<std::string>& log_;
};

TEST_F(StepGraphsTest, TheTransportHearsOfACapture) {
  NotedCaptures captures(stream_.log);
  StepGraphs graphs(stream_, true, &captures);
  EXPECT_EQ(run(graphs, 256), Log{"enqueue"});
  EXPECT_EQ(run(graphs, 256),
            (Log{"begins", "capture", "enqueue", "captured 1", "ends", "launch 1", "new"}));
  EXPECT_EQ(run(graphs, 256), (Log{"launch 1", "again"}));
  graphs.forbid();
  EXPECT_EQ(run(graphs, 256), Log{"enqueue"});
}

TEST_F(StepGraphsTest, WhatTheDeviceDoesNotCaptureRunsEagerlyFromThenOn) {
  StepGraphs graphs(stream_, true);
  run(graphs, 256);
  stream_.refuses = true;
  EXPECT_EQ(run(graphs, 256), (Log{"capture", "enqueue", "refused: no", "enqueue"}));
  stream_.refuses = false;
  EXPECT_EQ(run(graphs, 256), Log{"enqueue"});
}

TEST_F(StepGraphsTest, ARefusalEndsTheRunWhereATransportsCallsWereCaptured) {
  NotedCaptures captures(stream_.log);
  StepGraphs graphs(stream_, true, &captures);
  run(graphs, 256);
  stream_.refuses = true;
  EXPECT_THROW(run(graphs, 256), DeviceError);
  EXPECT_EQ(stream_.log, (Log{"begins", "capture", "enqueue", "ends"}));
}

TEST_F(StepGraphsTest, OffMeansOff) {
  StepGraphs graphs(stream_, false);
  EXPECT_FALSE(graphs.enabled());
  for (int step = 0; step < 5; ++step) EXPECT_EQ(run(graphs, 256), Log{"enqueue"});
  MetaStream without(device_, "compute");
  EXPECT_FALSE(StepGraphs(without, true).enabled());
}

}  // namespace
}  // namespace ringlet::train
