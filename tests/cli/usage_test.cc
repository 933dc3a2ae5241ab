// Command lines that cannot be: one line that names the flag and the remedy, exit code 2; and what
// --help and --version print.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

struct WrongLine {
  const char* name;
  Arguments arguments;
  std::vector<std::string> parts;
};

class WrongLines : public ::testing::TestWithParam<WrongLine> {};

TEST_P(WrongLines, EndWithTwoAndSayWhy) {
  const Outcome outcome = ringlet(GetParam().arguments);
  EXPECT_TRUE(fails_with(2, outcome, {}));
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : GetParam().parts) EXPECT_TRUE(holds(outcome.err, {part}));
}

const WrongLine kWrongLines[] = {
    {"CycleWithoutOneCycle",
     {"train", "--schedule", "cosine", "--cycle-momentum"},
     {"--cycle-momentum", "only --schedule one-cycle has a cycle"}},
    {"NoCommand", {}, {"needs a command", "train", "eval", "bench", "ringlet --help"}},
    {"UnknownCommand", {"trian"}, {"'trian'", "did you mean train?"}},
    {"NothingToBench", {"bench"}, {"'ringlet bench' needs a command", "train"}},
    {"UnknownBench", {"bench", "tran"}, {"'ringlet bench'", "did you mean train?"}},
    {"UnknownFlag", {"train", "--epoch", "3"}, {"'--epoch'", "did you mean --epochs?"}},
    {"FolderWithoutAFlag", {"train", "/tmp"}, {"'/tmp'", "did you mean --data /tmp?"}},
    {"DataWithoutAFlag", {"eval", "synthetic"}, {"did you mean --data synthetic?"}},
    {"ManyOfAPort", {"report", "a", "--follow", "--port", "65536"}, {"--port: '65536'", "65535"}},
    {"WordsOfAPort", {"report", "a", "--follow", "--port", "abc"}, {"'abc' is not a whole number"}},
    {"WordsOfSteps", {"replay", "t", "--steps", "1,a"}, {"--steps: 'a' is not a whole number"}},
    {"Dropout", {"train", "--dropout", "0.1"}, {"--label-smoothing, --weight-decay or --augment?"}},
    {"DataPath", {"train", "--data-path", "x"}, {"did you mean --data FOLDER?"}},
    {"RunName", {"train", "--name", "x"}, {"did you mean --out?"}},
    {"ShortBatch", {"train", "-b", "32"}, {"did you mean --batch-size?"}},
    {"UnknownFlagWithValue", {"train", "--sinc=ring"}, {"did you mean --sync?"}},
    {"FarFetchedFlag", {"train", "--xyzzy-plugh"}, {"'--xyzzy-plugh'", "ringlet train --help"}},
    {"SurplusWord", {"train", "now"}, {"'now' is not known to 'ringlet train'"}},
    {"UnknownSync", {"train", "--sync", "rign"}, {"--sync", "'rign'", "did you mean ring?"}},
    {"UnknownModel", {"train", "--model", "lnet"}, {"--model", "did you mean lenet?"}},
    {"UnknownSchedule", {"train", "--schedule", "one-cylce"}, {"did you mean one-cycle?"}},
    {"UnknownData", {"train", "--data", "fashion-mist"}, {"did you mean fashion-mnist?"}},
    {"NoSuchFolder", {"train", "--data", "/no/such"}, {"--data", "'/no/such'", "folder"}},
    {"UnknownOverlap", {"train", "--overlap", "yes"}, {"--overlap", "auto, on, off"}},
    {"NoReplicas", {"train", "--replicas", "0"}, {"--replicas", "'0'", "from 1 to"}},
    {"NoThreads", {"train", "--threads", "0"}, {"--threads", "'0'", "from 1 to"}},
    {"BatchOfWords", {"train", "--batch-size", "x"}, {"--batch-size", "'x'", "whole number"}},
    {"NegativeBatch", {"train", "--batch-size", "-8"}, {"--batch-size", "'-8'"}},
    {"HugeBatch", {"train", "--batch-size", "9223372036854775807"}, {"--batch-size", "2147483647"}},
    {"EndlessBatch", {"train", "--batch-size", "99999999999999999999"}, {"--batch-size"}},
    {"BrokenEpochs", {"train", "--epochs", "1.5"}, {"--epochs", "'1.5'", "whole number"}},
    {"NegativeSeed", {"train", "--seed", "-1"}, {"--seed", "'-1'"}},
    {"NaNRate", {"train", "--lr", "nan"}, {"--lr", "'nan'"}},
    {"NegativeRate", {"train", "--lr", "-0.1"}, {"--lr", "at least 0"}},
    {"LargeMomentum", {"train", "--momentum", "2"}, {"--momentum", "from 0 to 1"}},
    {"NoTimeout", {"train", "--comm-timeout", "0"}, {"--comm-timeout"}},
    {"MissingValue", {"train", "--epochs"}, {"--epochs needs a value"}},
    {"GivenTwice", {"train", "--epochs", "1", "--epochs", "2"}, {"--epochs", "more than once"}},
    {"SwitchWithValue", {"train", "--exact=5"}, {"--exact", "no value"}},
    {"NoDevice", {"train", "--devices", "gpu"}, {"--devices", "'gpu'", "cpu:0"}},
    {"OneBadDevice", {"train", "--devices", "cpu:0,cpux"}, {"--devices", "'cpux'"}},
    {"DeviceWithoutMemory", {"train", "--device", "meta"}, {"--device", "'meta'"}},
    {"DevicesAndReplicas",
     {"train", "--devices", "cpu:0,cpu:0", "--replicas", "2"},
     {"--devices", "--replicas", "cannot be combined"}},
    {"ResumeAndInit", {"train", "--resume", "a", "--init", "b"}, {"--resume", "--init"}},
    {"SaveNowhere",
     quick_train({"--save-every", "1", "--no-out"}),
     {"--save-every", "cannot be combined with", "--no-out"}},
    {"ExactByThree", quick_train({"--exact", "--replicas", "3"}), {"--exact", "power of two"}},
    {"ExactByRing", quick_train({"--exact", "--replicas", "2", "--sync", "ring"}), {"doubling"}},
    {"NcclOnTheProcessor", quick_train({"--transport", "nccl"}), {"--transport nccl", "--device"}},
    {"NcclsOwnSumLocally",
     quick_train({"--transport", "local", "--sync", "nccl"}),
     {"--sync nccl needs --transport nccl"}},
    {"NcclOnOneGpu",
     {"train", "--devices", "cuda:0,cuda:0", "--transport", "nccl"},
     {"--transport nccl", "cuda:0 has several"}},
    {"DevicesOfTwoKinds", {"train", "--devices", "cpu,cuda:0"}, {"one kind", "cpu:0 and cuda:0"}},
    {"FewShards", quick_train({"--replicas", "4", "--shards", "2"}), {"--shards 2", "4 replicas"}},
    {"EmptyValue", quick_train({"--out", ""}), {"--out is empty", "leave it out"}},
    {"EmptyValueOfACheckedFlag", {"train", "--epochs", ""}, {"--epochs is empty"}},
    {"EmptyValueBehindEquals", {"report", "a", "--out=", "b"}, {"--out is empty"}},
    {"EmptyValueThatMayBeLeftOut", quick_train({"--processes", ""}), {"--processes is empty"}},
    {"EmptyValueOfAShortFlag", {"bench", "all-reduce", "-b", ""}, {"is empty"}},
    {"EmptyFile", {"inspect", ""}, {"word 2", "is empty"}},
    {"EmptyDevice",
     {"train", "--devices", "cpu:0,,cpu:0"},
     {"--devices: 'cpu:0,,cpu:0'", "empty entry"}},
    {"EmptyLastRanks", {"bench", "all-reduce", "--ranks=2,"}, {"--ranks: '2,'", "empty entry"}},
    {"ManyPasses",
     quick_train({"--accumulate", "2147483647"}),
     {"--accumulate (--micro-batches) 2147483647", "64 samples of a step"}},
    {"SecondName", quick_train({"--micro-batches", "0"}), {"--micro-batches: '0' is not"}},
    {"SecondNameTwice", {"eval", "--init", "a", "--init=b"}, {"--init is given more than once"}},
    {"SecondNameBesideTheFirst",
     quick_train({"--micro-batches", "2147483647"}),
     {"--accumulate (--micro-batches) 2147483647"}},
    {"ManyShards",
     quick_train({"--shards", "1073741824"}),
     {"--shards 1073741824", "64 samples of a step"}},
    {"DrawnFashionMnist",
     {"train", "--data", "fashion-mnist", "--synthetic-train", "9"},
     {"--synthetic-train is for --data synthetic", "fashion-mnist"}},
    {"DrawnByDefault", {"train", "--synthetic-test", "9"}, {"--synthetic-test", "fashion-mnist"}},
    {"FolderOfDrawn",
     quick_train({"--data-dir", "/tmp"}),
     {"--data-dir is for --data fashion-mnist", "synthetic"}},
    {"EvalOfNothing", {"eval"}, {"--checkpoint is required"}},
    // Words of other programs.
    {"OthersGpus",
     {"train", "--gpus", "2"},
     {"'--gpus'", "did you mean --device cuda --replicas N?"}},
    {"OthersGpusOfRanks", {"tune", "--gpus=2"}, {"did you mean --device cuda --ranks N?"}},
    {"OthersProcesses",
     {"train", "--nproc_per_node=2"},
     {"'--nproc_per_node=2'", "did you mean --processes N?"}},
    {"OthersCheckpoint", {"train", "--checkpoint", "a"}, {"--init FILE, or --resume DIR?"}},
    {"OthersFit", {"fit"}, {"'fit'", "did you mean train?"}},
    {"OthersTest", {"test"}, {"'test'", "did you mean eval?"}},
    {"OthersCheckpointToTest", {"eval", "--ckpt_path", "a"}, {"did you mean --checkpoint?"}},
    {"OthersCheckpointToTrain", {"train", "--ckpt_path=a"}, {"--init FILE, or --resume DIR?"}},
    {"OthersPrecision", {"train", "--precision", "bf16-mixed"}, {"did you mean bf16?"}},
    {"OthersHalf", {"train", "--precision", "16-mixed"}, {"did you mean f16?"}},
    {"OthersLogger", {"train", "--wandb"}, {"did you mean --tensorboard, or OUT/metrics.jsonl?"}},
    {"OthersImageSize", {"train", "--imgsz", "64"}, {"did you mean --image-size?"}},
    {"OthersAugment", {"train", "--augment", "RandomResizedCrop"}, {"random-resized-crop?"}},
    {"OthersTrials", {"train", "--trials", "5"}, {"did you mean --seeds 1,2,3?"}},
    {"OthersBytes", {"bench", "all-reduce", "--minbytes", "4K"}, {"did you mean --begin?"}},
    {"OthersThatTheCommandLacks", {"devices", "--gpus", "2"}, {"'--gpus' is not known to"}},
    {"OthersDevice", {"train", "--device", "GPU:1"}, {"'GPU:1'", "did you mean cuda?"}},
    {"OthersModel",
     {"train", "--model", "vgg16"},
     {"'vgg16'", "did you mean resnet18, or a model of your own (docs/library.md)?"}},
    {"OthersData", {"train", "--data", "mnist"}, {"the folder with MNIST's files?"}},
    {"OthersType", {"bench", "all-reduce", "--type", "float32"}, {"did you mean f32?"}},
    {"JsonOfNothing", {"--json", "devices"}, {"--json needs --version"}},
    {"HelpOfNothing", {"help", "trian"}, {"'trian' is not known to 'ringlet'", "train?"}},
    {"HelpOfNothingBelow", {"help", "bench", "tran"}, {"'tran' is not known to 'ringlet bench'"}},
    {"HelpAndMan", {"help", "--man", "train"}, {"COMMAND cannot be combined with --man"}},
};

INSTANTIATE_TEST_SUITE_P(Usage, WrongLines, ::testing::ValuesIn(kWrongLines),
                         [](const auto& line) { return std::string(line.param.name); });

TEST(RunsAndModels, WithoutAFlagAreNoData) {
  const TemporaryDirectory folder;
  const std::string run = folder / "run", model = run + "/model.safetensors";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  for (const std::string& word : {run, model}) {
    EXPECT_TRUE(fails_with(2, ringlet({"eval", word}), {"did you mean --checkpoint " + word}));
  }
  EXPECT_TRUE(fails_with(2, ringlet({"train", run}), {"did you mean --resume " + run}));
}

/// The lines of --help-all that begin with a flag.
std::vector<std::string> flag_lines(const Arguments& command) {
  std::istringstream lines(ringlet(command + Arguments{"--help-all"}).out);
  std::vector<std::string> flags;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) flags.push_back(line);
  }
  return flags;
}

// CLI11 takes true for any, and turns other words into numbers for some.
TEST(Switches, TakeNoValue) {
  const std::regex of_switch("  (-., )?(--[a-z0-9-]+)(  .*)?");
  int switches = 0;
  for (const Arguments& command : all_commands()) {
    if (command == Arguments{"bench"} || command == Arguments{"trace"}) continue;  // list others'
    for (const std::string& line : flag_lines(command)) {
      std::smatch parts;
      if (!std::regex_match(line, parts, of_switch)) continue;
      ++switches;
      for (const char* value : {"=true", "=x", "=4"}) {
        EXPECT_TRUE(fails_with(2, ringlet(command + Arguments{parts.str(2) + value}),
                               {parts.str(2) + " is a switch: it takes no value"}))
            << command.back();
      }
    }
  }
  EXPECT_GT(switches, 100);
}

TEST(Numbers, AreDecimal) {
  const Outcome bench = ringlet({"bench", "all-reduce", "--ranks", "010,2", "--print-config"});
  EXPECT_TRUE(holds(bench.out, {"\nranks = [\"10\", \"2\"]\n"}));
  const Outcome train = ringlet({"bench", "train", "--replicas", "010", "--print-config"});
  EXPECT_TRUE(holds(train.out, {"\nreplicas = [\"10\"]\n"}));
}

TEST(Devices, ThatDoNotExistAreNamed) {
  EXPECT_TRUE(fails_with(
      1, ringlet(quick_train({"--devices", "cpu:7"})),
      {"cpu:7 does not exist", "any number of replicas or ranks may run on it (--device cpu)"}));
}

TEST(Devices, MayBeListed) {
  const Outcome outcome = ringlet(quick_train({"--devices", "cpu:0,cpu,cpu:0"}));
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"22 + 21 + 21 over 3 replicas"}));
}

TEST(Help, NamesEveryFlagWithinAHundredColumns) {
  const Outcome outcome = ringlet({"train", "--help-all"});
  ASSERT_TRUE(succeeds(outcome));
  for (const char* flag : {"--model lenet|lenet-d2l|mlp",
                           "--data ",
                           "--data-dir ",
                           "--replicas N",
                           "--device ",
                           "--devices ",
                           "--threads N",
                           "--sync naive|tree|ring|",
                           "--transport auto|local|shm|gloo|mpi|nccl",
                           "--shards N",
                           "--exact ",
                           "--grad-dtype f32|f16|bf16|bf16-between",
                           "--precision f32|tf32|bf16|f16",
                           "--emulate-precision ",
                           "--bucket-kb N",
                           "--first-bucket-kb N",
                           "--overlap auto|on|off",
                           "--batch-size N",
                           "--epochs N",
                           "--max-steps N",
                           "--lr X",
                           "--momentum X",
                           "--nesterov ",
                           "--weight-decay X",
                           "--schedule constant|step|cosine|polynomial|one-cycle",
                           "--optimizer sgd|adamw",
                           "--no-decay none|norm|bias|norm,bias",
                           "--clip-norm X",
                           "--label-smoothing X",
                           "--class-weights equal|balanced|W,W,...",
                           "--warmup-epochs X",
                           "--step-epochs N",
                           "--seed N",
                           "--no-shuffle ",
                           "--init ",
                           "--out ",
                           "--no-out ",
                           "--save-every N",
                           "--resume ",
                           "--metrics ",
                           "--tensorboard ",
                           "--check-replicas N",
                           "--comm-timeout X",
                           "--trace ",
                           "--accumulate, --micro-batches N"}) {
    EXPECT_TRUE(holds(outcome.out, {flag}));
  }
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << "'" << line << "'";
  }
}

TEST(Help, GroupsFlagsAndGivesDefaults) {
  const Outcome outcome = ringlet({"train", "--help-all"});
  EXPECT_TRUE(
      holds(outcome.out, {"\nModel and data:\n", "\nRecipe:\n", "\nReplicas:\n",
                          "\nSynchronisation:\n", "of each replica [1]\n", "[fashion-mnist]",
                          "[lenet, mlp, resnet18-cifar, resnet20: 0.1; lenet-d2l: 0.2;\n",
                          "resnet18, resnet34, resnet50, iresnet18,",
                          "iresnet100: 0.05; a folder of photographs: 0.1 where they are few]"}));
  for (const char* ugly : {"TEXT", "INT:", "FLOAT", "POSITIVE", "Excludes", "{false}"}) {
    EXPECT_EQ(outcome.out.find(ugly), std::string::npos) << ugly;
  }
}

/// The program's commands, and the program alone.
std::vector<Arguments> pages_of_help() {
  std::vector<Arguments> pages = all_commands();
  pages.emplace_back();
  return pages;
}

/// All that matches, in order.
std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

constexpr const char* kFlagRow = "\n  (?:-[a-z], )?(--[a-z-]+)";

TEST(Help, BeginsWithThreeExamplesAndShowsFewFlags) {
  // Photographs and their recipes need a few more.
  const std::map<Arguments, std::size_t> flags{
      {{"train"}, 17}, {{"bench", "train"}, 12}, {{"bench", "all-reduce"}, 12}};
  for (const auto& [command, few] : flags) {
    const std::string text = ringlet(command + Arguments{"--help"}).out;
    EXPECT_EQ(matches(text.substr(0, text.find("usage: ")), "\n  (ringlet )").size(), 3u) << text;
    const auto rows = matches(text, kFlagRow);
    ASSERT_EQ(rows.size(), few + 2) << text;
    EXPECT_EQ(rows[few], "--help");
    EXPECT_EQ(rows[few + 1], "--help-all");
  }
  const std::string text = ringlet({"--help"}).out;
  EXPECT_EQ(matches(text.substr(0, text.find("usage: ")), "\n  (ringlet )").size(), 3u) << text;
}

TEST(Help, ShowsNothingThatTheCommandHasNot) {
  for (const Arguments& command : pages_of_help()) {
    const Outcome all = ringlet(command + Arguments{"--help-all"});
    const Outcome few = ringlet(command + Arguments{"--help"});
    ASSERT_TRUE(succeeds(all));
    ASSERT_TRUE(succeeds(few));
    const auto usage = few.out.find("usage: ");
    const auto begin = std::min(few.out.find("Examples:"), usage);
    const std::string examples = few.out.substr(begin, usage - begin);
    const std::string rows = all.out.substr(all.out.find("usage: "));
    std::vector<std::string> flags = matches(few.out, kFlagRow);
    for (const std::string& flag : matches(examples, " (--[a-z-]+)")) flags.push_back(flag);
    for (const std::string& flag : flags) {
      EXPECT_TRUE(holds(rows, {" " + flag})) << few.out;
    }
  }
}

TEST(Help, FitsTheTerminal) {
  for (const int columns : {40, 80, 200}) {
    for (const Arguments& command : pages_of_help()) {
      const Outcome outcome =
          ringlet(command + Arguments{"--help"}, {.terminal = true, .columns = columns});
      EXPECT_EQ(outcome.code, 0);
      std::istringstream lines(outcome.out);
      for (std::string line; std::getline(lines, line);) {
        std::erase(line, '\r');
        const bool to_be_typed = line.starts_with("  ringlet ") || line.starts_with("  ~/");
        EXPECT_LE(line.size(), to_be_typed ? 100u : std::min(columns, 100)) << line;
      }
    }
  }
}

TEST(Help, IsAskedForByNameToo) {
  EXPECT_EQ(ringlet({"help"}).out, ringlet({"--help"}).out);
  EXPECT_EQ(ringlet({"help", "train"}).out, ringlet({"train", "--help"}).out);
  const Outcome bench = ringlet({"help", "bench", "train"});
  EXPECT_TRUE(succeeds(bench));
  EXPECT_EQ(bench.out, ringlet({"bench", "train", "--help"}).out);
}

TEST(Help, ListsTheCommands) {
  const Outcome outcome = ringlet({"--help"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"\n  train ", "\n  eval ", "\n  bench ", "\n  devices ", "--version"}));
  const auto& all = all_commands();
  for (const Arguments& one : {Arguments{"train"}, {"bench", "all-reduce"}, {"trace", "merge"}}) {
    EXPECT_EQ(std::count(all.begin(), all.end(), one), 1);
  }
}

TEST(Version, IsOneLine) {
  const Outcome outcome = ringlet({"--version"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(outcome.out.starts_with("ringlet 0."));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

TEST(Version, ForProgramsSaysWhatWasBuiltAndHow) {
  for (const Arguments& line : {Arguments{"--version", "--json"}, {"--json", "--version"}}) {
    const Outcome outcome = ringlet(line, {.environment = {{"RINGLET_ISA", "portable"}}});
    ASSERT_TRUE(succeeds(outcome));
    const auto json = parse_json(outcome.out);
    EXPECT_TRUE(std::regex_match(json.at("version").get<std::string>(), std::regex("0\\..+")));
    const nlohmann::json& commit = json.at("commit");
    EXPECT_TRUE(commit.is_null() ||
                std::regex_match(commit.get<std::string>(), std::regex("[0-9a-f]{40}(-dirty)?")))
        << commit;
    EXPECT_TRUE(
        std::regex_match(json.at("compiler").get<std::string>(), std::regex("[A-Za-z]+ [0-9.]+")));
    EXPECT_TRUE(json.at("cuda").is_null() || json.at("cuda").is_string());
    EXPECT_EQ(json.at("static"), false);
    EXPECT_EQ(json.at("instruction_set"), "portable");
  }
}

}  // namespace
}  // namespace ringlet::testing
