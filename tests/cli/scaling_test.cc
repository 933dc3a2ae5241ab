// `ringlet bench train --replicas 1,2` as its users see it. Whether rows count is up to the
// machine: what is held here holds either way.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/core_pace.h"
#include "base/files/json_text.h"
#include "base/processors.h"
#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

using nlohmann::json;

constexpr int kNotGood = 4;

::testing::AssertionResult has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == text.npos) return ::testing::AssertionFailure() << "no " << part;
  }
  return ::testing::AssertionSuccess();
}

class Scaling : public ::testing::Test {
 protected:
  /// Two numbers of replicas of a small model.
  Outcome measure(const Arguments& flags, const char* batch = "16") const {
    return ringlet(Arguments{"bench", "train", "--model", "mlp", "--synthetic-train", "256",
                             "--batch-size", batch, "--replicas", "2,1", "--budget", "1ms",
                             "--json", folder_ / "s.json"} +
                   flags);
  }
  json written() const { return parse_json(read_file(folder_ / "s.json")); }
  TemporaryDirectory folder_;
};

/// Of a row: its parts add up to a step, its shares of the steps to 1, and the words say where its
/// cores were shared.
void check_row(const json& row, const std::string& said) {
  const bool two = row.at("replicas") == 2;
  ASSERT_EQ(row.contains("shared_core"), core_pace().knows_sums());
  const double shared = row.value("shared_core", -1.0);
  EXPECT_LE(shared, 1);
  const std::string words =
      two ? "2 replicas: their cores were shared for " : "1 replica: its core was shared for ";
  EXPECT_EQ(said.find(words) != said.npos, !shared_core_words(shared, "", "", "").empty());
  EXPECT_EQ(row.at("counts"), row.at("why_not").get<std::string>().empty());
  double parts = 0, last = 0;
  for (const json& part : row.at("phase_seconds")) parts += part.get<double>();
  EXPECT_GT(parts, 0);
  for (const json& share : row.at("came_last")) last += share.get<double>();
  if (two) {
    EXPECT_NEAR(last, 1, 1e-9);
    EXPECT_EQ(row.at("came_last").size(), 2U);
  }
}

TEST_F(Scaling, OfThreads) {
  const Outcome outcome = measure({"--steps", "12", "--report", folder_ / "s.html", "--strict"});
  const json all = written(), &scaling = all.at("scaling");
  EXPECT_EQ(outcome.code, scaling.at("busy").get<std::string>().empty() ? 0 : kNotGood);
  EXPECT_EQ(all.at("replicas_as"), "threads");
  EXPECT_EQ(scaling.at("batch"), "fixed");
  ASSERT_EQ(scaling.at("rows").size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const json& row = scaling.at("rows")[i];
    EXPECT_EQ(row.at("replicas"), i + 1) << "the smallest first";
    EXPECT_EQ(row.at("batch_size"), 16);
    EXPECT_EQ(row.at("rounds").size(), 6U);
    EXPECT_GT(row.at("/samples_per_second/value"_json_pointer), 0);
    EXPECT_GT(row.at("/samples_per_second/low"_json_pointer), 0);
    check_row(row, outcome.out);
  }
  EXPECT_EQ(all.contains("shared_core"), core_pace().knows_sums());
  EXPECT_TRUE(has(outcome.out, {"2 numbers of replicas, in 6 rounds: about ", "(--budget)",
                                "a batch of 16 shared by all replicas", "replicas    batch",
                                "would another device pay here? "}));
  EXPECT_TRUE(
      has(read_file(folder_ / "s.html"), {"Would another device pay here?", "id=\"rate\""}));
}

TEST_F(Scaling, OfProcessesWithABatchForEach) {
  const Outcome outcome = measure({"--steps", "6", "--batch", "per-replica", "--processes"});
  ASSERT_TRUE(succeeds(outcome));
  const json all = written();
  EXPECT_EQ(all.at("replicas_as"), "processes");
  EXPECT_EQ(all.at("batch_size"), 16);
  EXPECT_EQ(all.at("/scaling/rows/0/batch_size"_json_pointer), 16);
  EXPECT_EQ(all.at("/scaling/rows/1/batch_size"_json_pointer), 32);
  check_row(all.at("/scaling/rows/1"_json_pointer), outcome.out);
  EXPECT_TRUE(has(outcome.out, {"16 samples a replica, as processes x 1 thread"}));
}

/// Of 256 images a batch of 192 leaves 64 over. Other work adds time to a round beside its steps,
/// so the least disturbed round says how many samples a step had.
TEST_F(Scaling, HasStepsOfTheBatchThatItTells) {
  for (const Arguments& as : {Arguments{}, {"--processes"}}) {
    const Arguments flags{"--batch", "per-replica", "--steps", "12", "--force"};
    ASSERT_TRUE(succeeds(measure(flags + as, "96")));
    const json all = written(), &row = all.at("/scaling/rows/1"_json_pointer);
    EXPECT_EQ(row.at("batch_size"), 192);
    double most = 0;
    for (const json& round : row.at("rounds")) {
      double step = 0;
      for (const json& part : round.at("phase_seconds")) step += part.get<double>();
      most = std::max(most, step * round.at("samples_per_second").get<double>());
    }
    EXPECT_GT(most, 0.8 * 192);
  }
}

TEST_F(Scaling, NeedsImagesForTheLargestBatch) {
  EXPECT_TRUE(fails_with(2, measure({"--steps", "2", "--batch", "per-replica"}, "200"),
                         {"2 replicas have a batch of 400, and there are 256 images"}));
}

TEST_F(Scaling, OfFewStepsIsNotJudged) {
  const Outcome outcome = measure({"--steps", "1", "--strict"});
  ASSERT_TRUE(succeeds(outcome)) << "nothing says that a row does not count";
  EXPECT_TRUE(has(outcome.out, {"so few steps that nothing is judged (--steps 12 is)",
                                "it cannot be said: so few steps make no rounds"}));
  EXPECT_TRUE(written().at("/scaling/rows/0/samples_per_second/low"_json_pointer).is_null());
}

TEST_F(Scaling, SaysWhichReplicasShareProcessors) {
  const Outcome outcome =
      measure({"--steps", "1", "--threads", std::to_string(usable_processors() + 1)});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(written().at("/scaling/rows/0/shares"_json_pointer));
  EXPECT_TRUE(has(outcome.out, {"1 replica: there are fewer processors (",
                                "no number of replicas had processors of its own"}));
}

TEST_F(Scaling, ComparesWithAnother) {
  ASSERT_TRUE(succeeds(measure({"--steps", "6"})));
  const Outcome outcome = ringlet({"compare", folder_ / "s.json", folder_ / "s.json"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(has(outcome.out, {"1 replica", "2 replicas", "samples/s"}));
}

TEST_F(Scaling, ReadsItsOwnConfiguration) {
  const Outcome printed = measure({"--print-config"});
  write_file(folder_ / "c.toml", printed.out);
  const Outcome outcome =
      ringlet({"bench", "train", "--config", folder_ / "c.toml", "--steps", "1", "--force"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(has(outcome.out, {"2 numbers of replicas"}));
}

TEST_F(Scaling, StopsBetweenItsProcessesAndLeavesNothing) {
  constexpr int kEndedByTerm = 128 + SIGTERM;
  const std::string place = folder_ / "temporary";
  std::filesystem::create_directories(place);
  Program program({"bench", "train", "--model", "mlp", "--synthetic-train", "256", "--batch-size",
                   "16", "--replicas", "1,2", "--processes", "--steps", "100000"},
                  {.environment = {{"TMPDIR", place}}});
  ASSERT_TRUE(program.wait_for("numbers of replicas"));
  EXPECT_FALSE(std::filesystem::is_empty(place));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().code, kEndedByTerm);
  EXPECT_TRUE(std::filesystem::is_empty(place));
}

// On a telephone nothing is wider than the page but what scrolls by itself.
TEST_F(Scaling, PageFitsATelephone) {
  ASSERT_TRUE(succeeds(measure({"--steps", "6", "--report", folder_ / "s.html"})));
  const Opened opened = open_in_browser(
      folder_ / "s.html",
      std::string(kProbeNames) +
          "document.documentElement.dataset.wide = document.body.scrollWidth > innerWidth;",
      380);
  if (!opened.could) GTEST_SKIP() << opened.why;
  EXPECT_TRUE(has(opened.dom, {"data-names=\"\"", "data-wide=\"false\""}));
  EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos);
}

}  // namespace
}  // namespace ringlet::testing
