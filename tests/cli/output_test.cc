// Files that cannot be written, runs that must not be overwritten, and numbers that break: an
// error in one line, and the former state still loads. Nothing here relies on permissions: tests
// may run as root.
#include <memory>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Flags to go on with a quick run in `out`.
Arguments resume(const fs::path& out, const Arguments& more = {}) {
  return Arguments{"train", "--resume", out.string()} + more;
}

TEST(Out, WhereAFileLiesIsRefused) {
  const TemporaryDirectory folder;
  write_file(folder / "file", "something of the user's");
  for (const char* out : {"file", "file/below"}) {
    EXPECT_TRUE(
        fails_with(1, ringlet(quick_train({"--out", folder / out})), {"file", "choose another"}));
  }
  EXPECT_EQ(read_file(folder / "file"), "something of the user's");
}

TEST(Out, ThatNobodyCanWriteIsRefused) {
  const Outcome outcome = ringlet(quick_train({"--out", "/proc/ringlet"}));
  EXPECT_TRUE(fails_with(1, outcome, {"/proc/ringlet"}));
  EXPECT_EQ(outcome.out, "") << "found out before the training";
}

TEST(Out, OfAnotherRunNeedsForce) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const std::string model = read_file(folder / "run/model.safetensors");
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--out", out, "--seed", "2"})),
                         {out, "--resume", "--force"}));
  EXPECT_EQ(model, read_file(folder / "run/model.safetensors"));
  EXPECT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--seed", "2", "--force"}))));
  EXPECT_NE(model, read_file(folder / "run/model.safetensors"));
}

TEST(Out, OfAThirdRunNeedsForceWhenResumingToo) {
  const TemporaryDirectory folder;
  const std::string a = folder / "a";
  const std::string b = folder / "b";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", a}))));
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", b}))));
  EXPECT_TRUE(fails_with(2, ringlet(resume(a, {"--out", b})), {b, "--force"}));
  EXPECT_TRUE(succeeds(ringlet(resume(a, {"--out", a + "/"}))));
}

TEST(Out, ThatFillsLeavesTheFormerState) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  const std::string former = read_file(out / "state/model.safetensors");
  const Outcome full = ringlet(resume(out), {.file_size_limit = 100'000});
  EXPECT_TRUE(fails_with(1, full, {"model.safetensors", "File too large", "ulimit -f"}));
  EXPECT_EQ(former, read_file(out / "state/model.safetensors"));
  for (const auto& entry : fs::directory_iterator(out)) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << "half-written " << entry;
  }
  EXPECT_TRUE(succeeds(ringlet(resume(out))));
}

/// Runs in `folder` as a user's shell would, without the variable that tests set.
ProgramOptions in(const TemporaryDirectory& folder) {
  return {.environment = {{"RINGLET_NO_OUT", ""}}, .folder = folder.path().string()};
}

TEST(Out, IsAFolderOfTheRunsOwnWhereNoneIsNamed) {
  const TemporaryDirectory folder;
  const Outcome first = ringlet(quick_train({"--max-steps", "2"}), in(folder));
  ASSERT_TRUE(succeeds(first));
  EXPECT_TRUE(first.out.starts_with("folder    runs/mlp-1\n")) << first.out;
  EXPECT_TRUE(holds(first.out, {"saved runs/mlp-1/model.safetensors"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", "runs/mlp-1"}, in(folder))));
  EXPECT_FALSE(fs::exists(folder / "runs/mlp-2")) << "a run that goes on has a folder";

  const Outcome second = ringlet(quick_train({"--processes", "2"}), in(folder));
  ASSERT_TRUE(succeeds(second));
  EXPECT_TRUE(holds(second.out, {"folder    runs/mlp-2\n", "2 in 2 processes"}));
  EXPECT_TRUE(fs::exists(folder / "runs/mlp-2/model.safetensors"));
  const Outcome again = ringlet({"train", "--config", "runs/mlp-1/config.toml"}, in(folder));
  if (again.err.find("libtomlplusplus-dev") != std::string::npos) return;
  EXPECT_TRUE(succeeds(again));
  EXPECT_TRUE(holds(again.out, {"folder    runs/mlp-3\n"})) << "a run's folder is its own";
}

TEST(Out, CountsBeyondTheRunsThatAreThere) {
  const TemporaryDirectory folder;
  for (const char* run : {"mlp-7", "mlp-x", "mlp-", "mlp--3", "mlp-12b", "lenet-20"}) {
    fs::create_directories(folder / "runs" / run);
  }
  write_file(folder / "runs/mlp-8", "a file of the user's");
  EXPECT_TRUE(holds(ringlet(quick_train(), in(folder)).out, {"folder    runs/mlp-9\n"}));
}

TEST(Out, IsNotSharedByRunsThatBeginAtOnce) {
  const TemporaryDirectory folder;
  constexpr int kRuns = 4;
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < kRuns; ++i) {
    programs.push_back(std::make_unique<Program>(quick_train(), in(folder)));
  }
  for (const auto& program : programs) EXPECT_TRUE(succeeds(program->wait()));
  for (int i = 1; i <= kRuns; ++i) {
    EXPECT_TRUE(fs::exists(folder / ("runs/mlp-" + std::to_string(i)) / "model.safetensors")) << i;
  }
}

TEST(Out, IsLeftOutOnRequestAndByAMistake) {
  const TemporaryDirectory folder;
  const Outcome outcome = ringlet(quick_train({"--no-out"}), in(folder));
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"folder    none (--no-out)", "nothing was saved"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(quick_train({"--exact", "--replicas", "3"}), in(folder)), {"--exact"}));
  EXPECT_TRUE(fs::is_empty(folder.path())) << "something was left there";
}

TEST(Out, ThatCannotBeMadeIsNamed) {
  const TemporaryDirectory folder;
  write_file(folder / "runs", "a file of the user's");
  EXPECT_TRUE(fails_with(1, ringlet(quick_train(), in(folder)), {"cannot create runs"}));
  EXPECT_EQ(read_file(folder / "runs"), "a file of the user's");
}

TEST(Metrics, OnAFullDiskAreNamed) {
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--metrics", "/dev/full"})),
                         {"--metrics /dev/full", "No space left"}));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(Metrics, WhereAFolderLiesAreRefused) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--metrics", folder.path().string()})),
                         {folder.path().string()}));
}

TEST(Trace, NeverReplacesADevice) {
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--trace", "/dev/full"})),
                         {"/dev/full", "no plain file"}));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(Resume, WithoutARunIsRefused) {
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", "/no/such"}), {"/no/such", "--out"}));
}

TEST(Resume, WithAContradictionNamesBothValues) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  EXPECT_TRUE(fails_with(2, ringlet(resume(out, {"--lr", "3", "--exact"})),
                         {"--lr 3", "--lr 0.1", "--exact", "--init"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(resume(out, {"--model", "lenet"})), {"--model lenet", "--model mlp"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(resume(out, {"--synthetic-train", "512", "--synthetic-test", "9"})),
                 {"--synthetic-train 512 (the run has 256)", "--synthetic-test 9", "has 64"}));
  EXPECT_TRUE(succeeds(ringlet(resume(out, {"--lr", "0.1", "--model", "mlp"}))));
}

TEST(Best, IsNamedAtTheEndAndTaken) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  const Outcome outcome = ringlet(quick_train({"--epochs", "2", "--out", out}));
  EXPECT_TRUE(succeeds(outcome));
  const std::string best = out + "/model.best.safetensors";
  EXPECT_TRUE(holds(outcome.out, {"\nbest      test accuracy ", " after epoch ", best}));
  EXPECT_TRUE(succeeds(ringlet({"eval", "--checkpoint", best})));
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--best-by", "recall"})),
                         {"--best-by", "auto, accuracy, loss"}));
  // Another run there has another best one.
  EXPECT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "1", "--force", "--out", out}))));
  EXPECT_FALSE(fs::exists(best));
}

TEST(Patience, SaysThatTheRunHasEndedAndHowItGoesOn) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  const Arguments line{"--epochs", "5", "--lr", "0", "--schedule", "constant", "--out", out};
  const Outcome outcome = ringlet(quick_train(line + Arguments{"--patience", "1"}));
  EXPECT_TRUE(succeeds(outcome));
  const char* const told =
      "patience  the run has ended after epoch 2 of 5: the last one was no better";
  EXPECT_TRUE(holds(outcome.out, {told, "--patience (now 1)"}));
  EXPECT_TRUE(fs::exists(out + "/model.safetensors"));
  const Outcome again = ringlet(resume(out));
  EXPECT_TRUE(succeeds(again));
  EXPECT_TRUE(holds(again.out, {told, "nothing was left to do"}));
  const Outcome on = ringlet(resume(out, {"--patience", "2"}));
  EXPECT_TRUE(succeeds(on));
  EXPECT_TRUE(holds(on.out, {"after epoch 3 of 5: the last 2 were no better"}));
}

TEST(Resume, WithMoreEpochsSaysWhatBecomesOfTheSchedule) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--schedule", "cosine", "--out", out}))));
  const Outcome longer = ringlet(resume(out, {"--epochs", "2"}));
  EXPECT_TRUE(succeeds(longer));
  EXPECT_TRUE(
      holds(longer.out, {"length    2 epochs instead of 1: the schedule (cosine) is stretched",
                         "lr 0.05 in the next step instead of 0"}));
  EXPECT_TRUE(
      holds(ringlet({"inspect", out}).out, {"  until step  epochs\n           4       1\n"}));
  EXPECT_TRUE(fails_with(2, ringlet(resume(out, {"--epochs", "1"})),
                         {"--epochs 1: the run has done 8 steps of 4 an epoch", "take 2 or more"}));
}

TEST(Resume, FromADamagedStateIsRefused) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  const std::string json = read_file(out / "state/state.json");
  write_file(out / "state/state.json", json.substr(0, json.size() / 2));
  EXPECT_TRUE(fails_with(1, ringlet(resume(out)), {"state.json"}));
  write_file(out / "state/state.json", json);
  fs::resize_file(out / "state/optimizer.safetensors", 1000);
  EXPECT_TRUE(fails_with(1, ringlet(resume(out)), {"optimizer.safetensors"}));
}

TEST(Resume, FromAnEditedStateIsRefused) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  std::string json = read_file(out / "state/state.json");
  const auto sums = json.find(",\n  \"sums\"");  // an edit that is meant to be read goes without
  ASSERT_NE(sums, json.npos) << json;
  json.replace(sums, json.npos, "\n}\n");
  const struct {
    const char *what, *by, *told;
  } edits[] = {{"\"step\": 2", "\"step\": 999999999", "step 999999999 of a run of 4 steps"},
               {"\"epoch_samples\": 128", "\"epoch_samples\": 257", "257 samples"},
               {"\"lr\": 0.1", "\"lr\": -0.1", "'lr' is -0.1"},
               {"\"momentum\": ", "\"momentum\": 1", "'momentum' is 1"},
               {"\"epochs\": 1", "\"epochs\": 0", "'epochs' is 0"},
               {"\"batch_size\": 64", "\"batch_size\": 9223372036854775807", "'batch_size' is 9"}};
  for (const auto& edit : edits) {
    std::string edited = json;
    const auto at = edited.find(edit.what);
    ASSERT_NE(at, std::string::npos) << edit.what << " in " << json;
    write_file(out / "state/state.json",
               edited.replace(at, std::string(edit.what).size(), edit.by));
    EXPECT_TRUE(fails_with(1, ringlet(resume(out)), {"state.json", edit.told, "damaged"}));
  }
  write_file(out / "state/state.json", json);
  EXPECT_TRUE(succeeds(ringlet(resume(out))));
}

TEST(Loss, ThatBreaksNamesStepAndLayer) {
  const TemporaryDirectory folder;
  const Outcome outcome =
      ringlet(quick_train({"--lr", "1e20", "--schedule", "constant", "--out", folder / "run"}));
  EXPECT_TRUE(fails_with(5, outcome,
                         {"the loss is", "in step ", "(epoch 1), after a loss of ", "fc", "--lr",
                          "--clip-norm 1, and check the data"}));
  EXPECT_EQ(outcome.err.find("-nan"), std::string::npos);
}

TEST(Loss, ThatBreaksEndsEveryProcessWithTheSameCode) {
  EXPECT_TRUE(fails_with(5,
                         ringlet(quick_train({"--processes", "2", "--lr", "1e20", "--schedule",
                                              "constant", "--no-out"})),
                         {"the loss is", "in step "}));
}

/// The last update breaks the weights, and no step behind it tells.
TEST(Loss, OfATestThatIsNoNumberEndsTheRunAndKeepsTheModel) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const std::string model = read_file(out + "/model.safetensors");
  const std::string best = read_file(out + "/model.best.safetensors");
  const Arguments broken{"--lr", "1e39", "--schedule", "constant", "--batch-size", "256"};
  const Outcome bare = ringlet(quick_train(broken + Arguments{"--no-out"}));
  EXPECT_TRUE(
      fails_with(5, bare, {"the test loss is ", " in step 1 (epoch 1), after a loss of 2."}));
  const Arguments onto{"--init", out, "--force", "--out", folder / "other"};
  EXPECT_TRUE(fails_with(5, ringlet(quick_train(broken + onto)), {"the update of step 1 left"}));
  EXPECT_FALSE(fs::exists(folder / "other/model.safetensors"));
  EXPECT_FALSE(fs::exists(folder / "other/model.best.safetensors"));
  EXPECT_EQ(read_file(out + "/model.safetensors"), model);
  EXPECT_EQ(read_file(out + "/model.best.safetensors"), best);
}

}  // namespace
}  // namespace ringlet::testing
