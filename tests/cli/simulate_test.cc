// `ringlet simulate`: its table and files, and where its costs come from.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

Outcome simulate(const Arguments& flags, const ProgramOptions& options = {}) {
  return ringlet(Arguments{"simulate"} + flags, options);
}

nlohmann::json rows_of(const fs::path& file) {
  return json_or_discarded(read_file(file)).at("rows");
}

TEST(Simulate, PrintsATableAndWritesRows) {
  const TemporaryDirectory folder;
  const std::string file = folder / "rows.json";
  const Outcome outcome = simulate({"--ranks", "8,64", "--bytes", "504K", "--alpha", "5us",
                                    "--beta", "50G", "--strategies", "ring,nccl", "--json", file});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"8 ranks on one machine, 504K of f32 on each: latency 5 us, 50G bytes a "
                          "second, adding free\n",
                          "nccl is a library's own", "\nfastest: ring, 88.06 us\n"}));
  const nlohmann::json rows = rows_of(file);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].at("bytes"), 516096);
  EXPECT_EQ(rows[2].at("ranks"), 64);
  EXPECT_NEAR(rows[0].at("seconds").get<double>(), 14 * (5e-6 + 516096 / 8 / 50e9), 1e-9);
  EXPECT_TRUE(rows[1].contains("why_not"));
  EXPECT_TRUE(fails_with(2, simulate({"--alpha", "5us", "--beta", "50G", "--json", file}),
                         {file, "--force"}));
}

TEST(Simulate, TakesMachinesWithoutRanks) {
  const TemporaryDirectory folder;
  const std::string file = folder / "rows.json";
  ASSERT_TRUE(succeeds(
      simulate({"--machines", "4x2", "--alpha", "5us", "--beta", "50G", "--alpha-inside", "1us",
                "--beta-inside", "200G", "--strategies", "two-level", "--json", file})));
  const nlohmann::json rows = rows_of(file);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("ranks"), 8);
  EXPECT_EQ(rows[0].at("machines"), 4);
}

TEST(Simulate, TakesItsCostsFromMeasurementsAndStandsBesideThem) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.json", out = folder / "rows.json";
  ASSERT_TRUE(succeeds(ringlet({"bench", "all-reduce", "-b", "4K", "-e", "64K", "-f", "16", "-n",
                                "3", "--strategies", "ring,tree", "--json", file})));
  const Outcome outcome = simulate({"--from", file, "--measured", file, "--json", out});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"2 ranks on one machine, 4K of f32", "measured", "off by",
                                  "each strategy's costs as fitted to " + file, ", fit "}));
  int beside = 0;
  for (const auto& row : rows_of(out)) beside += row.contains("measured_seconds") ? 1 : 0;
  EXPECT_EQ(beside, 2 * 2);
}

TEST(Simulate, TakesItsCostsFromThisMachinesTable) {
  const TemporaryDirectory cache;
  const ProgramOptions options{.environment = {{"XDG_CACHE_HOME", cache.path().string()}}};
  EXPECT_TRUE(fails_with(2, simulate({}, options),
                         {"nothing says what messages cost", "--alpha", "--from", "ringlet tune"}));
  ASSERT_EQ(ringlet({"tune", "--ranks", "2", "--begin", "4K", "--end", "16K"}, options).code, 0);
  const Outcome outcome = simulate({"--ranks", "4"}, options);
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"costs as fitted to ", "all-reduce.", "\nfastest: "}));
}

}  // namespace
}  // namespace ringlet::testing
