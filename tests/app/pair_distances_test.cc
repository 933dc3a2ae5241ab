// The table of distances that a verification leaves, and what a report makes of it.
#include "app/report/pair_distances.h"

#include <gtest/gtest.h>

#include <cmath>

#include "app/report/sections.h"
#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "train/telemetry/verification_files.h"
#include "train/verification/verified.h"

namespace ringlet::app::report {
namespace {

PairDistances set_of(std::vector<double> distances, std::vector<bool> same) {
  return {"lfw", std::move(distances), std::move(same)};
}

TEST(PairDistances, AreReadAsTheyWereWritten) {
  const train::Verified lfw{
      .name = "lfw", .figures = {}, .distances = {0.1, 1 / 3.0, 4}, .same = {true, false, true}};
  const train::Verified other{
      .name = "a,b/pairs", .figures = {}, .distances = {0}, .same = {false}};
  const auto sets = parse_distances(train::distance_table({lfw, other}), "it");
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].name, "lfw");
  EXPECT_EQ(sets[0].distances, lfw.distances);
  EXPECT_EQ(sets[0].same, lfw.same);
  EXPECT_EQ(sets[1].name, "a,b/pairs");
  EXPECT_EQ(sets[1].distances, other.distances);
  EXPECT_TRUE(parse_distances("", "it").empty());
}

TEST(PairDistances, HaveNamesWithCommasInQuotes) {
  train::Verified set{
      .name = "a, \"b\"", .figures = {}, .distances = {0.5, 1}, .same = {true, false}};
  set.figures.roc = {{.threshold = 0.25, .false_accepts = 0, .true_accepts = 1}};
  const std::string table = train::distance_table({set});
  EXPECT_EQ(table, "set,pair,same,distance\n\"a, \"\"b\"\"\",0,1,0.5\n\"a, \"\"b\"\"\",1,0,1\n");
  EXPECT_EQ(train::roc_table({set}),
            "set,threshold,false_accept_rate,true_accept_rate\n\"a, \"\"b\"\"\",0.25,0,1\n");
  EXPECT_EQ(parse_distances(table, "it").at(0).name, set.name);
  // As tables were written before.
  EXPECT_EQ(parse_distances("set,pair,same,distance\na, b,0,1,0.5\na, b,1,0,1\n", "it").at(0).name,
            "a, b");
}

TEST(PairDistances, OfAnotherTableAreRefusedWithTheirLine) {
  const std::string head = "set,pair,same,distance\n";
  for (const char* line : {"lfw,0,1", "lfw,0,1,nan", "lfw,0,1,inf", "lfw,0,1,-1", "lfw,0,1,5",
                           "lfw,0,2,1", "lfw,1,1,1", "lfw,0,1,1x", ",,,", "lfw"}) {
    EXPECT_TRUE(
        testing::says(testing::message_of<FileError>([&] { parse_distances(head + line, "it"); }),
                      {"it: line 2 is not of a table of distances"}))
        << line;
  }
  EXPECT_TRUE(
      testing::says(testing::message_of<FileError>([&] { parse_distances("lfw,0,1,1\n", "it"); }),
                    {"it: line 1 "}));
}

TEST(PairDistances, AreWrongBeyondTheThresholdThatSuitsAllBest) {
  const PairDistances set = set_of({0.2, 0.4, 2.5, 1.5, 3, 0.3, 0.995, 1.405},
                                   {true, true, true, false, false, false, true, true});
  // Below 1.41 five of them are the same, of which four are, and two of three others are above.
  EXPECT_DOUBLE_EQ(best_threshold(set), 1.41);
  const std::vector<WrongPair> worst = worst_of(set, 1.41, 10);
  ASSERT_EQ(worst.size(), 2U);
  EXPECT_EQ(worst[0].pair, 5);
  EXPECT_FALSE(worst[0].same);
  EXPECT_NEAR(worst[0].by, 1.11, 1e-12);
  EXPECT_EQ(worst[1].pair, 2);
  EXPECT_TRUE(worst[1].same);
  EXPECT_NEAR(worst[1].by, 1.09, 1e-12);
  EXPECT_EQ(worst_of(set, 1.41, 1).size(), 1U);
  EXPECT_EQ(best_threshold(set_of({1, 2}, {false, false})), 0);
}

class VerificationSection : public ::testing::Test {
 protected:
  RunFolder run(const std::string& table) const {
    RunFolder run;
    run.path = folder_.path();
    run.name = "mine";
    run.metrics.verifications = {{2, "lfw", 0.8, 0.05, 20}, {4, "lfw", 0.9, 0.04, 21}};
    testing::write_file(folder_ / train::kDistancesFile, table);
    return run;
  }
  static bool has(const Html& html, const std::string& text) {
    return html.str().find(text) != std::string::npos;
  }
  const testing::TemporaryDirectory folder_;
};

TEST_F(VerificationSection, ShowsAccuracyRocDistancesAndSaysWhatIsMissing) {
  const Html html = verification_section(
      {run("set,pair,same,distance\nlfw,0,1,0.25\nlfw,1,0,0.5\nlfw,2,0,3\nlfw,3,1,2\n")});
  for (const char* id : {"verification-accuracy", "verification-roc", "verification-distances-1"}) {
    EXPECT_TRUE(has(html, std::string("id=\"") + id + "\"")) << id;
  }
  EXPECT_TRUE(has(html, "1 of 4 pairs are on the wrong side of 0.26"));
  EXPECT_TRUE(has(html,
                  "The pictures are not known here: run.json does not say where the pairs "
                  "of lfw lay"));
  EXPECT_TRUE(verification_section({RunFolder{}}).empty());
}

TEST_F(VerificationSection, NamesATableThatIsNone) {
  const Html html = verification_section({run("no table\n")});
  EXPECT_TRUE(has(html, "distances.csv: line 1 is not of a table of distances"));
  EXPECT_TRUE(has(html, "id=\"verification-accuracy\""));
}

TEST_F(VerificationSection, OfSeveralRunsHasAPlotForEachSet) {
  const RunFolder one = run("set,pair,same,distance\nlfw,0,1,0.25\nlfw,1,0,0.5\n");
  const Html html = verification_section({one, one});
  for (const char* id : {"verification-accuracy-1", "verification-roc-1",
                         "verification-distances-1", "verification-distances-2"}) {
    EXPECT_TRUE(has(html, std::string("id=\"") + id + "\"")) << id;
  }
}

}  // namespace
}  // namespace ringlet::app::report
