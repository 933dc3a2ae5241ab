// ringlet train --seeds and --sweep: the runs are those that one would have typed, and what is
// known of a former sweep is not trained again.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Sweep : public ::testing::Test {
 protected:
  std::string out(const std::string& name = "sweep") const { return (folder_ / name).string(); }
  Outcome go(const Arguments& flags) const {
    return ringlet(quick_train(Arguments{"--out", out()} + flags), {.folder = folder_.path()});
  }
  json record() const { return json::parse(read_file(out() + "/sweep.json")); }
  std::string model(const std::string& run) const {
    return read_file(out() + "/" + run + "/model.safetensors");
  }
  std::set<std::string> entries(const std::string& folder) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }
  TemporaryDirectory folder_;
};

TEST_F(Sweep, TrainsWhatOneWouldHaveTyped) {
  const Outcome outcome = go({"--seeds", "3,4", "--sweep", "lr=0.05,0.1", "--momentum", "0.5"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"sweep     lr: 0.05, 0.1\n", "seeds     3, 4\n", "4/4  ",
                                  "lr 0.05, seed 3: test accuracy ", "setting", "deviation"}));
  ASSERT_TRUE(succeeds(ringlet(
      quick_train({"--seed", "4", "--lr", "0.1", "--momentum", "0.5", "--out", out("alone")}))));
  EXPECT_EQ(model("lr=0.1,seed=4"), read_file(out("alone") + "/model.safetensors"));
  EXPECT_NE(model("lr=0.1,seed=3"), model("lr=0.1,seed=4"));
  EXPECT_NE(model("lr=0.05,seed=4"), model("lr=0.1,seed=4"));
  EXPECT_TRUE(holds(read_file(out() + "/lr=0.1,seed=4.txt"), {"epoch", "test accuracy"}));
  EXPECT_TRUE(holds(read_file(out() + "/sweep.html"), {"<!doctype html>", "lr 0.1"}));
}

TEST_F(Sweep, SaysOnceWhatItsRunsChooseAndWarnOf) {
  write_picture_folder(folder_ / "set", 6, 2);
  write_file(folder_ / "set/train/notes.txt", "none");
  const Outcome outcome =
      ringlet({"train", "--data", folder_ / "set", "--epochs", "2", "--max-steps", "1", "--freeze",
               "all-but-head", "--seeds", "1,2", "--out", out()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto count = [](const std::string& text, const std::string& word) {
    int times = 0;
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count(outcome.out, "chosen    resnet20 (--model)"), 1) << outcome.out;
  EXPECT_EQ(count(outcome.out, "chosen    --batch-size"), 1) << outcome.out;
  EXPECT_EQ(count(outcome.err, "ringlet: warning: --freeze all-but-head"), 1) << outcome.err;
  // What --max-steps ends is done.
  EXPECT_EQ(outcome.out.find("stopped"), std::string::npos) << outcome.out;
  const json all = record();
  for (const json& run : all.at("runs")) EXPECT_EQ(run.at("status"), "done");
}

TEST_F(Sweep, RecordsWhatCameOfEachRun) {
  ASSERT_TRUE(succeeds(go({"--seeds", "1..3"})));
  const json all = record();
  ASSERT_EQ(all["runs"].size(), 3U);
  double sum = 0;
  for (const json& run : all["runs"]) {
    EXPECT_EQ(run["status"], "done");
    EXPECT_EQ(run["epochs"], 1);
    sum += run["test_accuracy"].get<double>();
  }
  ASSERT_EQ(all["settings"].size(), 1U);
  EXPECT_NEAR(all["settings"][0]["mean"].get<double>(), sum / 3, 1e-12);
  EXPECT_EQ(all["settings"][0]["by_seed"].size(), 3U);
}

TEST_F(Sweep, TurnsSwitchesOnAndOff) {
  // A model that has Nesterov's momentum unless it is told otherwise.
  ASSERT_TRUE(succeeds(go({"--sweep", "nesterov=true,false", "--momentum", "0.9"})));
  EXPECT_TRUE(holds(read_file(out() + "/nesterov=true,seed=1/config.toml"), {"\nnesterov = true"}));
  EXPECT_TRUE(
      holds(read_file(out() + "/nesterov=false,seed=1/config.toml"), {"\nnesterov = false"}));
}

/// As other seeds would fail alike.
TEST_F(Sweep, EndsWhereNothingTrains) {
  for (const auto& [flags, code, why] :
       {std::tuple{Arguments{"--freeze", "nosuch"}, 2, "--freeze: 'nosuch' is no layer"},
        {Arguments{"--stages", "99"}, 2, "99 stages of a model"},
        {Arguments{"--init", "nosuch"}, 1, "nosuch: there is no such file"}}) {
    const Outcome outcome = go(Arguments{"--seeds", "1,2", "--force"} + flags);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(holds(outcome.err, {"error: seed 1: ", why}));
    EXPECT_FALSE(fs::exists(out() + "/seed=2"));
    EXPECT_EQ(record().at("runs").at(1).at("status"), "waiting");
  }
}

/// What all runs would write to one place they take from nowhere.
TEST_F(Sweep, LeavesTheFilesOfOneRunAlone) {
  const Arguments line = quick_train({"--out", out(), "--seeds", "1,2", "--config"});
  const auto with = [&](const char* name) { return (folder_ / name).string(); };
  write_file(folder_ / "c.toml", "trace = \"" + with("tr.json") + "\"\n");
  ASSERT_TRUE(succeeds(ringlet(line + Arguments{with("c.toml")},
                               {.environment = {{"RINGLET_METRICS", with("m.jsonl")},
                                                {"RINGLET_TENSORBOARD", with("tb")}}})));
  EXPECT_EQ(entries(folder_.path()), (std::set<std::string>{"c.toml", "sweep"}));
  EXPECT_TRUE(fs::exists(out() + "/seed=2/metrics.jsonl"));
}

TEST_F(Sweep, RunsSeveralAtOnceWithTheSameBytes) {
  ASSERT_TRUE(succeeds(go({"--seeds", "1,2,3"})));
  std::map<std::string, std::string> one_by_one;
  for (const char* run : {"seed=1", "seed=2", "seed=3"}) one_by_one[run] = model(run);
  ASSERT_TRUE(succeeds(go({"--seeds", "1,2,3", "--runs-at-once", "3", "--force"})));
  for (const auto& [run, bytes] : one_by_one) EXPECT_EQ(model(run), bytes) << run;
}

TEST_F(Sweep, GoesOnWithMoreSeeds) {
  ASSERT_TRUE(succeeds(go({"--seeds", "1,2"})));
  const auto before = fs::last_write_time(out() + "/seed=1/model.safetensors");
  const Outcome outcome = go({"--seeds", "1,2,3", "--resume", "auto"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"3/3  seed 3: "}));
  EXPECT_EQ(outcome.out.find("seed 1: "), std::string::npos);
  EXPECT_EQ(fs::last_write_time(out() + "/seed=1/model.safetensors"), before);
  EXPECT_EQ(record()["settings"][0]["runs"], 3);
}

/// True when every thread of `process` is held: until then a signal may still be handled.
bool is_held(pid_t process) {
  for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream status(thread.path() / "status");
    bool held = false;
    for (std::string line; std::getline(status, line);) {
      held |= line.starts_with("State:") && line.find('T') != std::string::npos;
    }
    if (!held) return false;
  }
  return true;
}

TEST_F(Sweep, IsStoppedAndGoesOn) {
  // Each epoch is synced to the disk, so many epochs would take as long as the disk likes. The run
  // is held after its first one until the signal is there.
  const Arguments lasting{"--epochs", "20", "--lr", "0.001"};
  const Arguments flags = quick_train(Arguments{"--out", out(), "--seeds", "1,2"} + lasting);
  Program program(flags);
  const std::string metrics = out() + "/seed=1/metrics.jsonl";
  ASSERT_TRUE(program.wait_until([&](const std::string&) {
    std::error_code none;
    return fs::exists(metrics, none) && fs::file_size(metrics, none) > 0;
  }));
  const std::vector<pid_t> children = children_of(program.pid());
  ASSERT_EQ(children.size(), 1U);
  ::kill(children.front(), SIGSTOP);
  ASSERT_TRUE(program.wait_until([&](const std::string&) { return is_held(children.front()); }));
  program.send(SIGINT);  // lets it go on as well
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 128 + SIGINT);
  EXPECT_EQ(stopped.err, "");
  EXPECT_TRUE(holds(stopped.out, {"1/2  seed 1: stopped", "2 of 2 runs are left to do",
                                  "--resume auto goes on"}));
  const Outcome outcome = ringlet(flags + Arguments{"--resume", "auto"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(read_file(out() + "/seed=1.txt"), {"resumed   after step "}));
  ASSERT_TRUE(
      succeeds(ringlet(quick_train(Arguments{"--out", out("whole"), "--seed", "1"} + lasting))));
  EXPECT_EQ(model("seed=1"), read_file(out("whole") + "/model.safetensors"));
}

TEST_F(Sweep, EndsItsRunsWhenItIsKilled) {
  Program program(quick_train({"--out", out(), "--seeds", "1", "--epochs", "100000"}));
  const std::string metrics = out() + "/seed=1/metrics.jsonl";
  ASSERT_TRUE(program.wait_until([&](const std::string&) { return fs::exists(metrics); }));
  const std::vector<pid_t> children = children_of(program.pid());
  ASSERT_EQ(children.size(), 1U);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait().signal, SIGKILL);
  for (int i = 0; i < 100 && ::kill(children.front(), 0) == 0; ++i) ::usleep(50'000);
  EXPECT_NE(::kill(children.front(), 0), 0);
}

TEST_F(Sweep, TellsOfRunsThatFailAndDoesTheOthers) {
  const Outcome outcome = go({"--sweep", "optimizer=sgd,adamw", "--beta1", "0.8"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(holds(outcome.out, {"1/2  optimizer sgd, seed 1: failed: --beta1",
                                  "2/2  optimizer adamw, seed 1: test accuracy",
                                  "optimizer sgd, seed 1 failed with code 2: --beta1"}));
  EXPECT_EQ(record()["runs"][0]["status"], "failed");
  EXPECT_EQ(record()["runs"][1]["status"], "done");
}

TEST_F(Sweep, RefusesWrongFlagsBeforeItWritesAnything) {
  struct {
    Arguments flags;
    std::string part;
  } const cases[] = {
      {{"--sweep", "lrr=0.1,0.2"}, "has no flag --lrr; did you mean lr?"},
      {{"--sweep", "lr=0.1,nan"}, "lr nan: --lr: 'nan' is not a number"},
      {{"--sweep", "lr=0.1,0.2", "--lr", "0.3"}, "--lr is given and swept; leave one out"},
      {{"--sweep", "out=a,b"}, "--out cannot differ between the runs of a sweep"},
      {{"--sweep", "seed=1,2"}, "write --seeds 1,2,3"},
      {{"--sweep", "seeds=1,2"}, "write --seeds 1,2,3"},
      {{"--sweep", "config=a,b"}, "--config cannot differ between the runs of a sweep"},
      {{"--sweep", "nesterov=1,2"}, "sweep nesterov=true,false"},
      {{"--seeds", "1", "--metrics", "x"}, "--metrics cannot be combined with --seeds"},
      {{"--seeds", "1", "--resume", "x"}, "no other run can be resumed by a sweep"},
      {{"--seeds", "1", "--processes"}, "--processes needs a number beside"},
      {{"--seeds", "1..1000000"}, "these are more than 1000 runs"},
      {{"--runs-at-once", "2"}, "--runs-at-once is for several runs"},
  };
  for (const auto& one : cases) EXPECT_TRUE(fails_with(2, go(one.flags), {one.part})) << one.part;
  EXPECT_TRUE(entries(folder_.path()).empty());
}

TEST_F(Sweep, ReplacesNothingUnasked) {
  ASSERT_TRUE(succeeds(go({"--seeds", "1"})));
  EXPECT_TRUE(fails_with(2, go({"--seeds", "1"}), {"holds a sweep", "--resume auto", "--force"}));
  EXPECT_TRUE(fails_with(2, go({"--seeds", "1", "--lr", "0.3", "--resume", "auto"}),
                         {"was of other flags ("}));
  write_file(fs::path(out()) / "sweep.json", "{}");
  EXPECT_TRUE(fails_with(1, go({"--seeds", "1", "--resume", "auto"}),
                         {"sweep.json is not what a sweep writes"}));
  EXPECT_TRUE(succeeds(go({"--seeds", "1", "--force"})));
}

TEST_F(Sweep, IsNotWrittenIntoARun) {
  ASSERT_TRUE(succeeds(go({})));
  const std::set<std::string> before = entries(out());
  for (const Arguments& more : {Arguments{}, {"--resume", "auto"}}) {
    EXPECT_TRUE(fails_with(2, go(Arguments{"--seeds", "1"} + more), {out(), "holds a run"}));
  }
  EXPECT_EQ(entries(out()), before);
}

}  // namespace
}  // namespace ringlet::testing
