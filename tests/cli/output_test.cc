// Places that cannot be written, runs that must not be overwritten, and numbers that break: an
// error in one line, and the former state still loads. Nothing here relies on permissions: tests
// may run as root.
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Flags to go on with a quick run in `out`.
Arguments resume(const fs::path& out, const Arguments& more = {}) {
  return Arguments{"train", "--synthetic-train", "256",       "--synthetic-test",
                   "64",    "--resume",          out.string()} +
         more;
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
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", out.string()}), {"other data"}));
  EXPECT_TRUE(succeeds(ringlet(resume(out, {"--lr", "0.1", "--model", "mlp"}))));
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
  const std::string json = read_file(out / "state/state.json");
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
  EXPECT_TRUE(fails_with(1, outcome, {"the loss is", "in step ", "(epoch 1)", "fc", "--lr"}));
  EXPECT_EQ(outcome.err.find("-nan"), std::string::npos);
}

}  // namespace
}  // namespace ringlet::testing
