// `ringlet tune`, and what `--sync auto` makes of its table.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "train/sync/tuning.h"

namespace ringlet::testing {
namespace {

std::filesystem::path only_file_in(const std::filesystem::path& folder) {
  return std::filesystem::directory_iterator(folder)->path();
}

/// On a machine that was too busy for any row to count, which it has to say.
bool kept_nothing(const Outcome& tuned) {
  if (tuned.out.find("nothing is kept; tune again") == std::string::npos) return false;
  EXPECT_TRUE(holds(tuned.out, {"the machine was busy: ", ", and none of these is kept\n"}));
  return true;
}

TEST(Tune, KeepsATableThatAutoPicksFrom) {
  const TemporaryDirectory cache;
  const ProgramOptions options{.environment = {{"XDG_CACHE_HOME", cache.path().string()}}};
  Program tune({"tune", "--ranks", "2", "--begin", "4K", "--end", "16K", "--budget", "5s"},
               options);
  const Outcome tuned = tune.wait(180);   // it measures for so long on a busy machine
  ASSERT_EQ(tuned.code, 0) << tuned.err;  // it may warn of a busy machine
  EXPECT_TRUE(holds(tuned.out, {" s, and up to 5 s more to measure again"}));
  if (kept_nothing(tuned)) GTEST_SKIP() << tuned.out;
  const auto file = only_file_in(cache / "ringlet");
  EXPECT_TRUE(
      holds(tuned.out, {"2 ranks: ", "kept in " + file.string() + "; --sync auto reads it\n"}));

  const Outcome picked = ringlet(quick_train({"--replicas", "2", "--sync", "auto"}), options);
  ASSERT_TRUE(succeeds(picked));
  auto table = parse_json(read_file(file));
  const std::string last = table["ranges"].back()["strategy"];
  EXPECT_TRUE(holds(picked.out, {"auto (" + last + ") all-reduce"}));

  for (auto& range : table["ranges"]) range["strategy"] = "tree";
  write_file(file, table.dump());
  EXPECT_TRUE(holds(ringlet(quick_train({"--replicas", "2", "--sync", "auto"}), options).out,
                    {"auto (tree) all-reduce"}));
}

TEST(Tune, ATableOfAnotherProcessorIsToldAndNotTaken) {
  const TemporaryDirectory cache;
  const ProgramOptions options{.environment = {{"XDG_CACHE_HOME", cache.path().string()}}};
  const auto file = cache / "ringlet" / train::tuning_file().filename();
  std::filesystem::create_directories(file.parent_path());
  write_file(file, R"({"processor": "an abacus", "ranges": [{"device": "cpu", "ranks": 2,
      "transport": "local", "from_bytes": 0, "strategy": "naive"}]})");
  const std::string told = file.string() + " was measured on an abacus, and this machine has ";
  const Outcome trained =
      ringlet(quick_train({"--replicas", "2", "--sync", "auto", "--probe", "off"}), options);
  EXPECT_EQ(trained.code, 0);
  EXPECT_TRUE(holds(trained.err, {"ringlet: warning: " + told}));
  EXPECT_EQ(trained.out.find("auto (naive)"), std::string::npos) << trained.out;
  const Outcome as_processes =
      ringlet(quick_train({"--processes", "2", "--sync", "auto", "--probe", "off"}), options);
  EXPECT_TRUE(holds(as_processes.err, {"ringlet: warning: " + told}));
  const Outcome alone = ringlet(quick_train({"--sync", "auto"}), options);
  EXPECT_EQ(alone.err.find(told), std::string::npos) << alone.err;  // it adds nothing
  const Outcome measured = ringlet(
      {"bench", "all-reduce", "--begin", "4K", "--end", "4K", "--strategies", "auto", "-n", "3"},
      options);
  EXPECT_TRUE(holds(measured.out, {told}));
}

TEST(Tune, WithoutALauncherSaysWhatToDo) {
  EXPECT_TRUE(
      fails_with(2, ringlet({"tune", "--processes"}),
                 {"tune --processes takes its place from torchrun, mpirun or srun, or from "
                  "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and none of these is set; "
                  "without it, threads are measured"}));
  EXPECT_TRUE(fails_with(2,
                         ringlet({"tune", "--processes"}, {.environment = {{"SLURM_JOB_ID", "7"}}}),
                         {"srun did not start this process"}));
}

TEST(Tune, SaysThatAutoDoesNotLookInAFileOfAnotherName) {
  const TemporaryDirectory folder;
  const std::string file = folder / "new/t.json";
  const Outcome tuned = ringlet(
      {"tune", "--ranks", "2", "--begin", "4K", "--end", "4K", "--budget", "5s", "--file", file});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  if (kept_nothing(tuned)) GTEST_SKIP() << tuned.out;
  EXPECT_TRUE(holds(tuned.out, {"kept in " + file + "; --sync auto does not look there"}));
}

TEST(Tune, FindsOutThatAFileCannotBeWrittenBeforeItMeasures) {
  const TemporaryDirectory folder;
  write_file(folder / "plain", "");
  write_file(folder / "rows.json", "{\"rows\": []}");
  const auto refused = [](const std::string& file, int code, const std::string& words) {
    const Outcome outcome = ringlet({"tune", "--file", file});
    EXPECT_TRUE(fails_with(code, outcome, {words})) << file;
    EXPECT_EQ(outcome.out, "") << file;
  };
  refused("-", 2, "--file - would not write to standard output");
  refused(folder / "rows.json", 1, "is not what ringlet tune writes; name another file");
  refused(folder / "plain/deeper/t.json", 1, "cannot make the folder");
  refused("/proc/1/t.json", 1, "cannot write");
  refused(folder.path(), 1, folder.path().string());
  EXPECT_EQ(read_file(folder / "rows.json"), "{\"rows\": []}");
}

TEST(Tune, ABrokenTableIsNamed) {
  const TemporaryDirectory cache;
  const ProgramOptions options{.environment = {{"XDG_CACHE_HOME", cache.path().string()}}};
  const Outcome tuned =
      ringlet({"tune", "--ranks", "2", "--begin", "4K", "--end", "4K", "--budget", "5s"}, options);
  ASSERT_EQ(tuned.code, 0);
  if (kept_nothing(tuned)) GTEST_SKIP() << tuned.out;
  const auto file = only_file_in(cache / "ringlet");
  write_file(file, "{}");
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--replicas", "2", "--sync", "auto"}), options),
                         {file.string(), "ringlet tune"}));
}

}  // namespace
}  // namespace ringlet::testing
