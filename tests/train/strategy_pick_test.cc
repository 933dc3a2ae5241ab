// How `auto` comes by its table, and that a run that goes on adds as before.
#include "train/sync/strategy_pick.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/files/file_error.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/state.h"

namespace ringlet::train {
namespace {

using testing::TemporaryDirectory;

/// Probes are off in the tests' environment.
class WithProbes : public ::testing::Test {
 protected:
  // NOLINTBEGIN(concurrency-mt-unsafe): before any other thread
  void SetUp() override { ::unsetenv(kProbes); }
  void TearDown() override { ::setenv(kProbes, "off", 1); }
  // NOLINTEND(concurrency-mt-unsafe)
};
class StrategyPicks : public WithProbes {};

/// What rank 0 of so many picks, and rank 0's strategies afterwards.
struct Picked {
  StrategyPick pick;
  std::string used;
};
Picked picked(int ranks, Execution execution, const std::filesystem::path& keep) {
  execution.devices.resize(static_cast<std::size_t>(ranks));
  Picked picked;
  run_replicas(execution, [&](Device& device, comm::Communicator& communicator) {
    const StrategyPick mine = pick_strategies(communicator, communicator, device, execution, keep);
    const std::string used = comm::format_table(communicator.table());
    if (communicator.rank() == 0) picked = {mine, used};
  });
  return picked;
}

TEST_F(StrategyPicks, AreMeasuredAndKept) {
  const TemporaryDirectory folder;
  const auto keep = folder / "cache" / "probes.json";
  const Picked first = picked(2, {}, keep);
  EXPECT_EQ(first.pick.by, PickedBy::probe);
  EXPECT_GT(first.pick.seconds, 0);
  EXPECT_EQ(first.used, comm::format_table(first.pick.table));
  EXPECT_TRUE(testing::says(in_words(first.pick), {"auto by a probe of ", " ms: "}));
  // On a busy machine it may not have been kept.
  keep_probe(keep, {"local", "0-1", 1e-6, {{3, 0, "ring"}, {3, 2048, "tree"}}});
  const std::vector<KeptProbe> kept = read_probes(keep);
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(comm::format_table(kept.back().table), "0 ring;2048 tree");
}

TEST_F(StrategyPicks, AreTheKeptOnesForRanksThatAreAsFarApart) {
  const TemporaryDirectory folder;
  const auto keep = folder / "probes.json";
  std::vector<KeptProbe> kept;
  for (const double seconds : {1e-6, 2e-6, 4e-6}) {
    kept.push_back({"local", "0-1", seconds, {{2, 0, "at " + std::to_string(1e6 * seconds)}}});
    keep_probe(keep, kept.back());
  }
  EXPECT_EQ(read_probes(keep).size(), 3U);
  const auto found = [&](const KeptProbe& now, int ranks) {
    const auto probe = find_probe(read_probes(keep), now, ranks);
    return probe ? probe->table.front().strategy : "";
  };
  EXPECT_EQ(found({"local", "0-1", 2.2e-6}, 2), "at 2.000000");
  EXPECT_EQ(found({"local", "0-1", 1.2e-6}, 2), "at 1.000000");
  EXPECT_EQ(found({"local", "0-1", 9e-6}, 2), "");
  EXPECT_EQ(found({"local", "0-1", 2e-6}, 3), "");
  EXPECT_EQ(found({"shm", "0-1", 2e-6}, 2), "");
  EXPECT_EQ(found({"local", "0-3", 2e-6}, 2), "");
  keep_probe(keep, {"local", "0-1", 2.1e-6, {{2, 0, "ring"}}});
  EXPECT_EQ(read_probes(keep).size(), 3U) << "in its place";
  EXPECT_EQ(found({"local", "0-1", 2e-6}, 2), "ring");
}

TEST_F(StrategyPicks, PassOverAFileThatIsNoneOfTheirs) {
  const TemporaryDirectory folder;
  const auto keep = folder / "probes.json";
  for (const char* content :
       {"", "{", "[]", R"({"rule": 5})", R"({"rule": 5, "probes": 3})",
        R"({"rule": 5, "probes": [3]})", R"({"rule": 5, "probes": [{"transport": "local"}]})"}) {
    testing::write_file(keep, content);
    EXPECT_TRUE(read_probes(keep).empty()) << content;
  }
  EXPECT_EQ(picked(2, {}, keep).pick.by, PickedBy::probe);
  keep_probe(keep, {"local", "0-1", 1e-6, {{2, 0, "ring"}}});
  ASSERT_FALSE(read_probes(keep).empty());
  std::string of_another_rule = testing::read_file(keep);
  const std::string key = "\"rule\": ";
  of_another_rule.replace(of_another_rule.find(key) + key.size(), 1, "0");
  testing::write_file(keep, of_another_rule);
  EXPECT_TRUE(read_probes(keep).empty()) << of_another_rule;
  EXPECT_EQ(picked(2, {}, "/proc/none/probes.json").pick.by, PickedBy::probe) << "cannot be kept";
}

TEST_F(StrategyPicks, GoByCostsWhereBitsOrNobodyAskForAProbe) {
  EXPECT_EQ(picked(3, {.probe = false}, {}).pick.by, PickedBy::costs);
  EXPECT_EQ(picked(3, {.deterministic = true}, {}).pick.by, PickedBy::costs);
  EXPECT_EQ(picked(3, {.sync = "ring"}, {}).pick.by, PickedBy::nothing);
  EXPECT_EQ(picked(1, {}, {}).pick.by, PickedBy::nothing);
  EXPECT_EQ(in_words(picked(3, {.probe = false}, {}).pick), "");
  ::setenv(kProbes, "off", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(picked(2, {}, {}).pick.by, PickedBy::costs);
}

TEST_F(StrategyPicks, AreTheGivenOnesBeforeAnyProbe) {
  const comm::StrategyTable table = {{2, 0, "tree"}, {3, 0, "naive"}, {3, 4096, "ring"}};
  const Picked given = picked(3, {.table = table}, {});
  EXPECT_EQ(given.pick.by, PickedBy::tuning);
  EXPECT_EQ(in_words(given.pick), "auto by ringlet tune: naive, from 4 KiB ring");
  const Picked before = picked(3, {.table = table, .table_of_state = true}, {});
  EXPECT_EQ(before.pick.by, PickedBy::state);
  EXPECT_EQ(in_words(before.pick), "auto as before: naive, from 4 KiB ring");
}

/// Two epochs of two steps.
TrainOptions options_into(const std::filesystem::path& out, int replicas) {
  TrainOptions options = plain_options(replicas, "auto");
  options.recipe.model = "mlp";
  options.recipe.epochs = 2;
  options.files.out = out;
  return options;
}

TEST(StrategiesOfARun, AreThoseOfBeforeWhereItGoesOn) {
  const data::Splits data = formula_splits(96);
  const TemporaryDirectory whole, folder;
  TrainOptions options = options_into(whole.path(), 3);
  options.execution.table = {{3, 0, "ring"}};
  const Outcome expected = run(options, data);
  EXPECT_EQ(comm::format_table(read_state(whole.path()).progress.strategies), "0 ring");

  options.files.out = folder.path();
  options.max_steps = 1;  // within an epoch
  run(options, data);
  for (const std::int64_t steps : {2, -1}) {  // at its end, and to the run's
    TrainOptions rest = options_into(folder.path(), 3);
    rest.max_steps = steps;
    rest.execution.probe = false;
    const RunSetup setup = make_run_setup(rest, data, 3, read_state(folder.path()));
    EXPECT_TRUE(setup.options.execution.table_of_state);
    const Outcome outcome = run(setup);
    EXPECT_EQ(comm::format_table(read_state(folder.path()).progress.strategies), "0 ring");
    if (steps < 0) {
      EXPECT_EQ(bytes_of(outcome.state), bytes_of(expected.state));
    }
  }
}

TEST(StrategiesOfARun, AreOthersOnOtherReplicas) {
  const data::Splits data = formula_splits(96);
  const TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path(), 3);
  options.execution.table = {{3, 0, "ring"}};
  options.max_steps = 1;
  run(options, data);
  const TrainOptions rest = options_into(folder.path(), 2);
  const RunSetup setup = make_run_setup(rest, data, 2, read_state(folder.path()));
  EXPECT_FALSE(setup.options.execution.table_of_state);
  run(setup);
  EXPECT_TRUE(read_state(folder.path()).progress.strategies.empty()) << "two add alike by any";
}

TEST(StrategiesOfARun, ThatAStateCannotHaveAreRefused) {
  const std::string text =
      R"({"format": 1, "step": 1, "epoch_loss": 0, "epoch_samples": 0, "data_hash": 1,
          "strategies": {"ranks": 3, "table": "7 ring"}, "recipe": {}})";
  EXPECT_TRUE(testing::says(
      testing::message_of<FileError>([&] { (void)parse_state_json("state.json", text); }),
      {"state.json does not hold a state", "the table of strategies does not begin at 0 bytes"}));
}

}  // namespace
}  // namespace ringlet::train
