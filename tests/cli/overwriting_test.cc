// Nothing that is there is lost: it is replaced only with --force, what a command reads is never
// written, and a folder takes one run at a time.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>

#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

Arguments bench(const char* flag, const std::string& file) {
  return {"bench",        "all-reduce", "--begin",      "4K", "--end", "4K",
          "--strategies", "ring",       "--iterations", "1",  flag,    file};
}

Arguments of_model(const char* command, const std::string& run, const Arguments& more) {
  return Arguments{command, "--checkpoint", run} + more;
}

Arguments replay(const std::string& run, const char* flag, const std::string& file) {
  return {"replay", run + "/../t.json", flag, file};
}

Arguments pipeline(const std::string& flag, const std::string& file) {
  return {"pipeline", "--model", "lenet", "--balance", "planned", flag, file};
}

/// The line that writes `file`, where `run` is a run's folder.
struct Writer {
  const char* name;
  std::function<Arguments(const std::string& run, const std::string& file)> line;
  const char* reads = nullptr;  ///< a file of the run that the line reads, if it does
};

const Writer kWriters[] = {
    {"Metrics",
     [](auto& run, auto& file) {
       return quick_train({"--metrics", file, "--init", run + "/model.safetensors"});
     },
     "model.safetensors"},
    {"Trace",
     [](auto& run, auto& file) {
       return quick_train({"--trace", file, "--init", run + "/model.safetensors"});
     },
     "model.safetensors"},
    {"Logits",
     [](auto& run, auto& file) {
       return of_model("predict", run,
                       {"--data", "synthetic", "--synthetic-test", "8", "--out", file});
     },
     "model.safetensors"},
    {"Onnx",
     [](auto& run, auto& file) {
       return of_model("export", run, {"--onnx", file});
     },
     "model.safetensors"},
    {"Report",
     [](auto& run, auto& file) {
       return Arguments{"report", run, "--out", file};
     },
     "metrics.jsonl"},
    {"ComparisonPage",
     [](auto& run, auto& file) {
       return Arguments{"compare", run, run, "--out", file};
     },
     "metrics.jsonl"},
    {"ComparisonJson",
     [](auto& run, auto& file) {
       return Arguments{"compare", run, run, "--json", file};
     }},
    {"Speed",
     [](auto&, auto& file) {
       return Arguments{"bench",  "train",   "--model", "mlp",       "--synthetic-train",
                        "64",     "--steps", "1",       "--warm-up", "1",
                        "--json", file};
     }},
    {"ScalingPage",
     [](auto&, auto& file) {
       return Arguments{"bench",    "train", "--model",      "mlp", "--synthetic-train", "64",
                        "--steps",  "1",     "--batch-size", "16",  "--replicas",        "1,2",
                        "--report", file};
     }},
    {"AllReduceJson", [](auto&, auto& file) { return bench("--json", file); }},
    {"AllReduceCsv", [](auto&, auto& file) { return bench("--csv", file); }},
    {"AllReduceTrace", [](auto&, auto& file) { return bench("--trace", file); }},
    {"ReplayPage", [](auto& run, auto& file) { return replay(run, "--out", file); }, "../t.json"},
    {"ReplayJson", [](auto& run, auto& file) { return replay(run, "--json", file); }},
    {"PipelineJson", [](auto&, auto& file) { return pipeline("--json", file); }},
    {"PipelinePage", [](auto&, auto& file) { return pipeline("--out", file); }},
    {"PipelineStill", [](auto&, auto& file) { return pipeline("--still", file); }},
    {"ReplayStill", [](auto& run, auto& file) { return replay(run, "--still", file); }},
    {"AllReducePage", [](auto&, auto& file) { return bench("--report", file); }},
};

class Writers : public ::testing::TestWithParam<Writer> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    ASSERT_TRUE(succeeds(
        ringlet(quick_train({"--out", run(), "--replicas", "2", "--trace", path("t.json")}))));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static std::string run() { return path("run"); }

 private:
  static inline std::unique_ptr<TemporaryDirectory> folder_;
};

TEST_P(Writers, ReplaceAFileOnlyWithForce) {
  const std::string file = path("mine");
  write_file(file, "the user's");
  const Arguments line = GetParam().line(run(), file);
  EXPECT_TRUE(fails_with(2, ringlet(line), {file, "is there already", "--force"}));
  EXPECT_EQ(read_file(file), "the user's");
  EXPECT_TRUE(succeeds(ringlet(line + Arguments{"--force"})));
  EXPECT_NE(read_file(file), "the user's");
}

TEST_P(Writers, ReplaceNoLinkToAFile) {
  const std::string file = path("linked"), link = path("link");
  fs::remove(link);
  write_file(file, "the user's");
  fs::create_symlink(file, link);
  EXPECT_TRUE(fails_with(2, ringlet(GetParam().line(run(), link)), {link, "--force"}));
  EXPECT_TRUE(fs::is_symlink(link));
  fs::remove(file);  // which leaves a link that leads nowhere
  EXPECT_TRUE(fails_with(2, ringlet(GetParam().line(run(), link)), {link, "--force"}));
}

TEST_P(Writers, MakeNoFileThatIsCalledAsStandardOutput) {
  const TemporaryDirectory folder;
  const Arguments line = GetParam().line(run(), "-");
  if (std::find(line.begin(), line.end(), "--csv") != line.end()) {
    GTEST_SKIP() << "it is standard output (AllReduceBench.WritesItsCsvToStandardOutput...)";
  }
  const Outcome outcome = ringlet(line, {.folder = folder.path()});
  EXPECT_TRUE(fails_with(2, outcome, {" - would ", "./-"}));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_P(Writers, NeverWriteWhatTheyRead) {
  if (GetParam().reads == nullptr) GTEST_SKIP() << "it reads no file but --config";
  const std::string file = run() + "/" + GetParam().reads, before = read_file(file);
  const std::string link = path("to_what_is_read"), twin = path("twin");
  for (const std::string& name : {link, twin}) fs::remove(name);
  fs::create_symlink(file, link);
  fs::create_hard_link(file, twin);
  for (const std::string& name : {file, link, twin}) {
    const Outcome outcome = ringlet(GetParam().line(run(), name) + Arguments{"--force"});
    EXPECT_TRUE(fails_with(2, outcome, {name, "never writes what it reads"}));
    EXPECT_EQ(read_file(file), before);
    EXPECT_EQ(read_file(name), before);
  }
}

TEST_P(Writers, NeverWriteTheirConfiguration) {
  const std::string config = path("c.toml");
  write_file(config, "# the user's\n");
  const Outcome outcome =
      ringlet(GetParam().line(run(), config) + Arguments{"--config", config, "--force"});
  if (outcome.err.find("libtomlplusplus-dev") != std::string::npos) GTEST_SKIP() << outcome.err;
  EXPECT_TRUE(fails_with(2, outcome, {config, "is what --config reads"}));
  EXPECT_EQ(read_file(config), "# the user's\n");
}

INSTANTIATE_TEST_SUITE_P(Flags, Writers, ::testing::ValuesIn(kWriters),
                         [](const auto& writer) { return std::string(writer.param.name); });

/// A run of far more epochs than a test waits for.
Arguments endless_train(const Arguments& more) {
  return quick_train(Arguments{"--epochs", "100000", "--lr", "0.001"} + more);
}

Arguments resume(const std::string& out, const Arguments& more = {}) {
  return Arguments{"train", "--synthetic-train", "256", "--synthetic-test", "64", "--resume", out} +
         more;
}

TEST(RunFolder, KeepsWhatIsTheUsers) {
  for (const char* name : {"config.toml", "epochs.csv", "run.json", "metrics.jsonl", "state"}) {
    const TemporaryDirectory folder;
    write_file(folder / name, "the user's");
    const Arguments line = quick_train({"--out", folder.path()});
    EXPECT_TRUE(fails_with(2, ringlet(line), {folder.path(), "--force"})) << name;
    EXPECT_EQ(read_file(folder / name), "the user's");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "something was left";
  }
}

TEST(Folders, AreNotMadeWithTheNameOfStandardOutput) {
  const TemporaryDirectory folder;
  for (const char* flag : {"--out", "--tensorboard"}) {
    const Outcome outcome = ringlet(quick_train({flag, "-"}), {.folder = folder.path()});
    EXPECT_TRUE(fails_with(2, outcome, {std::string(flag) + " - would ", "./-"}));
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

// A run's folder may come out of an archive, with whatever is in it.
TEST(RunFolder, WithALockThatLeadsElsewhereIsRefused) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", lock = out + "/.ringlet.lock", notes = folder / "notes";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out}))));
  const std::pair<const char*, std::function<void()>> makers[] = {
      {"is a link to another file", [&] { fs::create_symlink(notes, lock); }},
      {"is a link to another file", [&] { fs::create_symlink(folder / "not there", lock); }},
      {"is a link to a file that has another name", [&] { fs::create_hard_link(notes, lock); }},
      {"is not a regular file", [&] { ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0); }},
      {"is not a regular file", [&] { fs::create_directory(lock); }}};
  for (const auto& [what, make] : makers) {
    write_file(notes, "the user's");
    make();
    for (const Arguments& line :
         {Arguments{"train", "--resume", out}, Arguments{"train", "--resume", out, "--lr", "7"},
          quick_train({"--out", out, "--force"}),
          quick_train({"--out", out, "--resume", "auto"})}) {
      EXPECT_TRUE(fails_with(1, ringlet(line), {lock, what, "remove it"}));
    }
    EXPECT_EQ(read_file(notes), "the user's");
    EXPECT_FALSE(fs::exists(folder / "not there"));
    fs::remove(lock);
  }
}

TEST(RunFolder, IsNotReplacedByTheRunThatIsStartedFromIt) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", model = out + "/model.safetensors";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const std::string before = read_file(model);
  for (const std::string& file : {model, out + "/state/model.safetensors"}) {
    const Outcome outcome = ringlet(quick_train({"--init", file, "--out", out, "--force"}));
    EXPECT_TRUE(fails_with(2, outcome, {out, "is what --init reads"}));
  }
  EXPECT_EQ(read_file(model), before);
  fs::remove(model);  // as of a run that was ended early: its model is that of its state
  EXPECT_EQ(ringlet(quick_train({"--init", out, "--out", out, "--force"})).code, 2);
  EXPECT_TRUE(fs::exists(out + "/state/model.safetensors"));
}

TEST(RunFolder, GoesOnWithItsOwnFiles) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", metrics = folder / "m.jsonl";
  ASSERT_TRUE(
      succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out, "--metrics", metrics}))));
  const std::string all = read_file(metrics), first_step = all.substr(0, all.find('\n'));
  const Arguments resume{"train", "--synthetic-train", "256", "--synthetic-test",
                         "64",    "--resume",          out,   "--metrics"};
  write_file(folder / "notes", "the user's");
  EXPECT_TRUE(fails_with(2, ringlet(resume + Arguments{folder / "notes"}), {"notes", "--force"}));
  EXPECT_TRUE(succeeds(ringlet(resume + Arguments{metrics})));
  EXPECT_TRUE(read_file(metrics).starts_with(first_step));
  EXPECT_GT(read_file(metrics).size(), all.size());
}

/// What a run that begins leaves of a former one in its folder: nothing that anybody could take for
/// its own.
TEST(RunFolder, HoldsNothingOfTheRunBefore) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--save-every", "1"}))));
  ASSERT_TRUE(fs::exists(out + "/state.before"));
  // Broken numbers end it in a step, before it has saved anything.
  const Outcome broken = ringlet(quick_train({"--out", out, "--force", "--lr", "1e30"}));
  EXPECT_EQ(broken.code, 5) << broken.err;
  for (const char* name :
       {"model.safetensors", "model.best.safetensors", "state", "state.before"}) {
    EXPECT_FALSE(fs::exists(out + "/" + name)) << name;
  }
  EXPECT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--resume", "auto"}))))
      << "it begins, as if there had been none";
}

/// What is replaced is replaced when all that the new run begins with is there.
TEST(RunFolder, IsLeftByAStartThatFails) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", model = out + "/model.safetensors";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const std::string before = read_file(model), broken = folder / "broken";
  write_file(broken, "no weights");
  EXPECT_NE(ringlet(quick_train({"--out", out, "--force", "--init", broken})).code, 0);
  const Arguments elsewhere{"--out", out, "--force", "--tensorboard", "/proc/none/there"};
  EXPECT_EQ(ringlet(quick_train(elsewhere)).code, 1);
  EXPECT_EQ(read_file(model), before);
  EXPECT_TRUE(fs::exists(out + "/state/state.json"));
}

/// The files of a folder and what they hold.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) contents[entry.path()] = read_file(entry.path());
  }
  return contents;
}

/// A state may have any name, and lie in the run's folder or anywhere.
TEST(RunFolder, KeepsTheStateThatItGoesOnFrom) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", kept = folder / "kept", link = folder / "link";
  ASSERT_TRUE(succeeds(ringlet(
      quick_train({"--epochs", "2", "--max-steps", "5", "--save-every", "1", "--out", out}))));
  fs::copy(out + "/state", kept);
  fs::create_directory_symlink(out + "/state", link);
  const auto before = contents_of(kept);
  for (const Arguments& where : {Arguments{}, Arguments{"--out", kept, "--force"}}) {
    EXPECT_TRUE(fails_with(2, ringlet(resume(kept, where)), {"kept is a state alone", "--out"}));
  }
  EXPECT_TRUE(succeeds(ringlet(resume(kept, {"--out", folder / "other"}))));
  EXPECT_EQ(contents_of(kept), before);
  for (const std::string& state : {link, out + "/state.before", out + "/state/"}) {
    EXPECT_TRUE(succeeds(ringlet(resume(state, {"--epochs", "3"})))) << state;
    EXPECT_TRUE(fs::exists(out + "/model.safetensors")) << state;
    for (const std::string& saved : {out + "/state", out + "/state.before"}) {
      EXPECT_FALSE(fs::exists(saved + "/state")) << state;
    }
  }
}

/// On a disk with more room, say.
TEST(RunFolder, MayHaveALinkToItsState) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--epochs", "2", "--max-steps", "2", "--out", out}))));
  fs::rename(out + "/state", folder / "disk");
  fs::create_directory_symlink(folder / "disk", out + "/state");
  const std::string before = read_file(out + "/metrics.jsonl");
  ASSERT_TRUE(succeeds(ringlet(resume(out))));
  const std::string first = before.substr(0, before.find('\n'));
  EXPECT_TRUE(read_file(out + "/metrics.jsonl").starts_with(first));
}

/// Nor does its own history begin with another run's.
TEST(RunFolder, HoldsNothingOfTheRunBeforeWhereAnotherGoesOnThere) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", other = folder / "other";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--epochs", "2", "--max-steps", "4", "--out", out}))));
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", other}))));
  ASSERT_TRUE(succeeds(ringlet(resume(out, {"--out", other, "--force"}))));
  const std::string epochs = read_file(other + "/epochs.csv");
  EXPECT_EQ(epochs.find("\n1,"), std::string::npos) << epochs;
  EXPECT_NE(epochs.find("\n2,"), std::string::npos) << epochs;
}

TEST(RunFolder, HasNoModelOfAnEndThatIsNoneAnyMore) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", model = out + "/model.safetensors";
  ASSERT_TRUE(succeeds(ringlet(endless_train({"--out", out, "--max-steps", "2"}))));
  EXPECT_TRUE(fs::exists(model));
  Program live(resume(out));
  ASSERT_TRUE(live.wait_for("\n    2   "));
  live.send(SIGKILL);
  live.wait();
  EXPECT_FALSE(fs::exists(model)) << "it was the model of step 2";
  const Outcome tested = ringlet(of_model("eval", out, {"--synthetic-test", "64"}));
  EXPECT_TRUE(succeeds(tested));
  EXPECT_TRUE(holds(tested.out, {out + "/state/model.safetensors"}));
}

TEST(RunFolder, GoesOnWithMetricsThatHaveNoLineYet) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", metrics = folder / "m.jsonl";
  const Arguments line = quick_train({"--out", out, "--resume", "auto", "--metrics", metrics});
  fs::create_directory(out);
  write_file(out + "/config.toml", "");  // as a run leaves it that is killed in its first moment
  write_file(metrics, "");
  EXPECT_TRUE(succeeds(ringlet(line)));
  EXPECT_GT(read_file(metrics).size(), 0U);
}

/// Nor what lies in a folder that a command reads, or writes as a whole.
TEST(RunFolder, IsNotWrittenIntoByAnotherFlag) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", picture = out + "/pictures/hat/a.pgm";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  fs::create_directories(out + "/pictures/hat");
  write_file(picture, "P5 1 1 255\n7");
  const std::string model = out + "/model.safetensors", state = out + "/state/state.json";
  const std::string link = out + "/pictures/hat/b.pgm";
  fs::create_symlink(out + "/pictures/hat/a.pgm", link);
  const Arguments to_resume{"train", "--resume", out, "--force"};
  const Arguments lines[] = {
      to_resume + Arguments{"--trace", model},
      to_resume + Arguments{"--trace", state},
      to_resume + Arguments{"--metrics", out + "/state/optimizer.safetensors"},
      quick_train({"--out", out, "--force", "--trace", state}),
      {"inspect", out, "--force", "--out", model},
      of_model("predict", out, {out + "/pictures", "--force", "--embeddings", picture}),
      of_model("predict", out, {picture, "--force", "--embeddings", picture}),
      of_model("predict", out, {"--data", out + "/pictures", "--force", "--out", picture}),
      {"train", "--data", out + "/pictures", "--no-out", "--force", "--metrics", picture},
      {"train", "--data", out + "/pictures", "--no-out", "--force", "--metrics", link}};
  for (const Arguments& line : lines) {
    const std::string before = read_file(model) + read_file(state) + read_file(picture);
    EXPECT_EQ(ringlet(line).code, 2) << ::testing::PrintToString(line);
    EXPECT_EQ(read_file(model) + read_file(state) + read_file(picture), before);
  }
}

TEST(RunFolder, TakesAPageThatIsMadeAnew) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const Arguments line{"inspect", out, "--out", out + "/page.html", "--force"};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(succeeds(ringlet(line)));
}

TEST(Outputs, OfOneCommandAreSeveralFiles) {
  const TemporaryDirectory folder;
  const std::string file = folder / "f";
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--metrics", file, "--trace", file})),
                         {file, "is what --trace writes too"}));
  EXPECT_FALSE(fs::exists(file));
  for (const std::string& other : {std::string("./f"), file}) {
    EXPECT_TRUE(fails_with(
        2, ringlet(quick_train({"--metrics", "f", "--trace", other}), {.folder = folder.path()}),
        {"--metrics f is what --trace writes too"}));
  }
  EXPECT_FALSE(fs::exists(file));
}

TEST(SavedInputs, AreNotWrittenOverThePictures) {
  const TemporaryDirectory folder;
  const std::string run = folder / "run", picture = folder / "p.pgm";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  write_file(picture, "P5 1 1 255\n7");
  const Arguments line{"predict", "--checkpoint", run, picture, "--save-input", folder.path()};
  EXPECT_TRUE(
      fails_with(2, ringlet(line + Arguments{"--force"}), {picture, "is what IMAGE reads"}));
  EXPECT_EQ(read_file(picture), "P5 1 1 255\n7");
}

TEST(DataOfAFolder, AreNotWrittenOver) {
  const TemporaryDirectory folder;
  write_small_set(folder.path());
  const std::string images = folder / "train-images-idx3-ubyte", before = read_file(images);
  const Outcome outcome =
      ringlet({"train", "--model", "mlp", "--data", folder.path(), "--trace", images, "--force"});
  EXPECT_TRUE(fails_with(2, outcome, {images, "is what --data reads"}));
  EXPECT_EQ(read_file(images), before);
}

class LiveRun : public ::testing::TestWithParam<std::string> {};

TEST_P(LiveRun, KeepsItsFolderToItself) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  Program live(endless_train({"--out", out, "--processes", GetParam()}));
  ASSERT_TRUE(live.wait_for("\n    1   "));  // the first epoch's row
  const std::string config = read_file(out + "/config.toml");
  const pid_t holder = GetParam() == "1" ? live.pid() : children_of(live.pid()).front();
  for (const Arguments& line :
       {quick_train({"--out", out, "--seed", "2"}), quick_train({"--out", out, "--force"}),
        quick_train({"--out", out, "--force", "--processes", "2"}), resume(out),
        resume(out + "/state"), resume(out, {"--out", folder / "other"})}) {
    EXPECT_TRUE(fails_with(
        1, ringlet(line),
        {out + " is being written by process " + std::to_string(holder) + " on ", "wait for"}));
  }
  EXPECT_EQ(read_file(out + "/config.toml"), config);
  live.send(SIGINT);
  EXPECT_EQ(live.wait().code, 128 + SIGINT);
  EXPECT_FALSE(fs::exists(out + "/.ringlet.lock"));
}

INSTANTIATE_TEST_SUITE_P(Processes, LiveRun, ::testing::Values("1", "2"));

// A container's processes know no number of those outside. What reads a run leaves it alone.
TEST(LiveRuns, AreNotDisturbedByReadersInAnotherContainer) {
  const std::string contained = "unshare --user --map-root-user --pid --fork --mount-proc ";
  if (Program(ShellLine{contained + "true"}).wait().code != 0) {
    GTEST_SKIP() << "no namespaces may be made here";
  }
  const TemporaryDirectory folder;
  const std::string out = folder / "run", program = contained + built("bin/ringlet") + " ";
  Program live(endless_train({"--out", out, "--save-every", "1"}));
  ASSERT_TRUE(live.wait_for("\n    1   "));
  const std::string lines[] = {
      program + "report " + out + " --force --out " + (folder / "page").string(),
      program + "inspect " + out, program + "eval --checkpoint " + out};
  for (const std::string& line : lines) {
    for (int i = 0; i < 3; ++i) {
      const Outcome outcome = Program(ShellLine{line}).wait();
      EXPECT_FALSE(outcome.timed_out) << line;
    }
  }
  live.send(SIGINT);
  const Outcome outcome = live.wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
}

TEST(RunFolder, OfAKilledRunIsFree) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  Program killed(endless_train({"--out", out}));
  ASSERT_TRUE(killed.wait_for("\n    2   "));  // the first epoch's state is saved
  killed.send(SIGKILL);
  EXPECT_EQ(killed.wait().signal, SIGKILL);
  EXPECT_TRUE(fs::exists(out + "/.ringlet.lock"));
  EXPECT_TRUE(succeeds(ringlet(resume(out, {"--max-steps", "1"}))));
}

TEST(TwoRuns, AtOnceIntoOneFolderAreOneRun) {
  for (int round = 0; round < 5; ++round) {
    const TemporaryDirectory folder;
    const std::string out = folder / "run";
    Program first(quick_train({"--out", out, "--seed", "1"}));
    Program second(quick_train({"--out", out, "--seed", "2"}));
    const Outcome a = first.wait(), b = second.wait();
    EXPECT_NE(a.code == 0, b.code == 0) << a.err << b.err;
    const std::string seed = a.code == 0 ? "\nseed = 1\n" : "\nseed = 2\n";
    EXPECT_TRUE(holds(read_file(out + "/config.toml"), {seed}));
    EXPECT_TRUE(
        holds(read_file(out + "/state/state.json"), {a.code == 0 ? "\"seed\": 1" : "\"seed\": 2"}));
  }
}

}  // namespace
}  // namespace ringlet::testing
