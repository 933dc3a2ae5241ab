// The times of single calls and ranks: who was late, and the lines of --raw.
#include "bench/all_reduce/samples.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file_error.h"
#include "bench/all_reduce/measure.h"
#include "comm/all_reduce/ring.h"
#include "tests/support/files.h"

namespace ringlet::bench {
namespace {

using ringlet::testing::message_of;
using ringlet::testing::says;
using ringlet::testing::TemporaryDirectory;
using ringlet::testing::write_file;

TEST(RanksOfARow, HaveTheirOwnTimesAndShareOfLastPlaces) {
  Measurement row;
  set_ranks(row, {{1e-6, 2e-6, 3e-6, 2e-6}, {2e-6, 1e-6, 4e-6, 9e-6}});
  ASSERT_EQ(row.by_rank.size(), 2u);
  EXPECT_DOUBLE_EQ(row.by_rank[0].median_us, 2);
  EXPECT_DOUBLE_EQ(row.by_rank[0].mean_us, 2);
  EXPECT_DOUBLE_EQ(row.by_rank[0].last, 0.25);
  EXPECT_DOUBLE_EQ(row.by_rank[1].median_us, 3);
  EXPECT_DOUBLE_EQ(row.by_rank[1].mean_us, 4);
  EXPECT_DOUBLE_EQ(row.by_rank[1].last, 0.75);
}

/// Of three ranks, of which one takes `times` as long as the others and is the last in a share.
Measurement row_with(std::size_t rank, double times, double last) {
  Measurement row;
  row.ranks = 3;
  row.low_us = row.high_us = 1;
  row.by_rank.assign(3, {10, 10, (1 - last) / 2});
  row.by_rank[rank] = {10 * times, 10 * times, last};
  return row;
}

TEST(Late, IsARankThatIsSoInMostRows) {
  const std::vector<Measurement> rows(3, row_with(2, 1.3, 0.9));
  EXPECT_EQ(late_text(rows),
            "rank 2 is late: the last of 3 in 90 % of the calls, 1.30 times the others' time "
            "(median of 3 of 3 rows)");
}

TEST(Late, IsNobodyWithoutThreeSuchRowsThatCount) {
  std::vector<Measurement> rows(3, row_with(2, 1.3, 0.9));
  rows.back() = row_with(2, 1.05, 0.9);  // by hardly anything
  EXPECT_EQ(late_text(rows), "");
  rows.back() = row_with(2, 1.3, 0.7);  // in some calls
  EXPECT_EQ(late_text(rows), "");
  rows.back() = row_with(1, 1.3, 0.9);  // another one
  EXPECT_EQ(late_text(rows), "");
  rows.back() = row_with(2, 1.3, 0.9);
  rows.back().counts = false;
  EXPECT_EQ(late_text(rows), "");
  rows.back().counts = true;
  rows.back().root = 0;  // whose ranks do unlike things
  EXPECT_EQ(late_text(rows), "");
  rows.back().root = kNoRoot;
  rows.back().low_us = 0;  // of few calls
  EXPECT_EQ(late_text(rows), "");
  rows.back().low_us = 1;
  EXPECT_NE(late_text(rows), "");
  rows.resize(5, row_with(0, 1, 0.33));  // three of five
  EXPECT_EQ(late_text(rows), "");
}

/// A ring after which rank 1 sleeps.
class SlowAtRankOne : public comm::AllReduce {
 public:
  explicit SlowAtRankOne(comm::Transport& transport)
      : AllReduce(transport), ring_(comm::make_all_reduce("ring", transport)) {}
  const char* name() const override { return "slow"; }
  void run(Stream& stream, View data, ReduceOp op) override {
    ring_->run(stream, data, op);
    if (rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return ring_->elements_sent(count);
  }

 private:
  std::unique_ptr<comm::AllReduce> ring_;
};

std::vector<Measurement> measure_slow(bool keep) {
  AllReduceBenchOptions options;
  options.sizes = {64, 128, 256};
  options.strategies = {"slow"};
  options.warm_up = 1;
  options.iterations = 12;
  options.keep_samples = keep;
  options.execution.devices.assign(2, DeviceId{});
  options.execution.overlap = false;
  options.execution.strategies.add(
      {"slow", comm::Needs::nothing, comm::RingAllReduce::path_cost,
       [](comm::Transport& transport) { return std::make_unique<SlowAtRankOne>(transport); }});
  return measure_all_reduce(options, [](const Measurement&) {});
}

TEST(Late, IsTheRankThatSleepsAndItsCallsAreTold) {
  auto rows = measure_slow(true);
  ASSERT_EQ(rows.size(), 3u);
  for (Measurement& row : rows) {
    ASSERT_EQ(row.by_rank.size(), 2u);
    EXPECT_GT(row.by_rank[1].last, 0.7);
    EXPECT_GE(row.by_rank[1].median_us, 10000);
    ASSERT_NE(row.samples, nullptr);
    EXPECT_EQ(row.samples->calls_of_rounds, (std::vector<int>(6, 2)));
    EXPECT_EQ(row.samples->seconds.at(1).size(), 12u);
    row.counts = true;  // whatever else the machine does
  }
  EXPECT_TRUE(says(late_text(rows), {"rank 1 is late: the last of 2 in "}));
  EXPECT_EQ(measure_slow(false).front().samples, nullptr);
}

TEST(Samples, FillALineOfEachCall) {
  Measurement row;
  row.strategy = "ring";
  row.ranks = 2;
  row.bytes = 64;
  const auto samples = std::make_shared<Samples>();
  samples->ranks = {0, 2};
  samples->seconds = {{1e-6, 2e-6, 3e-6}, {4e-6, 5e-6, 6.5e-6}};
  samples->calls_of_rounds = {2, 1};
  row.samples = samples;
  const std::string text = raw_lines({row, Measurement()});
  EXPECT_TRUE(
      text.starts_with("all-reduce,2,1,all,f32,sum,true,64,ring,0,0,0,1.000\n"
                       "all-reduce,2,1,all,f32,sum,true,64,ring,0,0,1,2.000\n"
                       "all-reduce,2,1,all,f32,sum,true,64,ring,0,1,0,3.000\n"))
      << text;
  EXPECT_TRUE(
      text.ends_with("ring,2,0,1,5.000\nall-reduce,2,1,all,f32,sum,true,64,ring,2,1,0,"
                     "6.500\n"))
      << text;
  const std::string heading = kRawHeading;
  EXPECT_EQ(std::count(heading.begin(), heading.end(), ','), 12);
}

TEST(RanksOfARow, ComeBackFromJsonOrAreRefused) {
  const TemporaryDirectory folder;
  const auto read = [&](const nlohmann::json& row) {
    write_file(folder / "x.json", row.dump());
    return read_measurements(folder / "x.json").front();
  };
  Measurement row = row_with(1, 2, 0.5);
  row.strategy = "ring";
  row.bytes = 64;
  row.median_us = row.min_us = row.p99_us = 1;
  const nlohmann::json written = to_json(row);
  EXPECT_DOUBLE_EQ(read(written).by_rank.at(1).median_us, 20);
  EXPECT_DOUBLE_EQ(read(written).by_rank.at(1).last, 0.5);
  const auto refused = [&](const nlohmann::json& by_rank) {
    nlohmann::json odd = written;
    odd["by_rank"] = by_rank;
    return message_of<FileError>([&] { read(odd); });
  };
  EXPECT_TRUE(says(refused(7), {"row 1: 'by_rank' is not a list"}));
  EXPECT_TRUE(
      says(refused(nlohmann::json::array({1, 2, 3})), {"'by_rank' is not a list of objects"}));
  EXPECT_TRUE(says(refused(nlohmann::json::array({written.at("by_rank").at(0)})),
                   {"'by_rank' has 1 of 3 ranks"}));
  nlohmann::json negative = written.at("by_rank");
  negative.at(0)["last"] = 2;
  EXPECT_TRUE(says(refused(negative), {"'by_rank' has a time that is not above 0"}));
}

}  // namespace
}  // namespace ringlet::bench
