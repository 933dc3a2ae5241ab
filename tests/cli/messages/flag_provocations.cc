// Flags, configurations, variables, devices and other processes that bring a message.
#include "tests/cli/failing_processes.h"
#include "tests/cli/messages/provocations.h"
#include "train/sync/tuning.h"

namespace ringlet::testing {
namespace {

Outcome as_process(const Environment& environment) {
  return quick({"--processes", "--comm-timeout", "1"}, environment);
}

/// The variables of the first of two processes.
const Environment kFirstOfTwo = first_of_two();

/// The first of two processes, with one variable more.
Environment first_of_two_with(const std::string& name, const std::string& value) {
  Environment variables = kFirstOfTwo;
  variables[name] = value;
  return variables;
}

Provocation refused_process(const Environment& environment) {
  return {2, [=](const Stage&) { return as_process(environment); }};
}
Provocation collective(const char* name, const Arguments& flags) {
  return {2, [=](const Stage&) { return ringlet(Arguments{"bench", name} + flags); }};
}
Provocation bench(const Arguments& flags) { return collective("all-reduce", flags); }
/// Of `bench all-reduce --json`.
constexpr const char* kRow =
    R"({"engine":"ringlet","ranks_as":"threads","transport":"local","strategy":"ring","ranks":2,)"
    R"("bytes":4096,"count":1024,"type":"f32","op":"sum","in_place":true,"iterations":3,)"
    R"("median_us":2,"min_us":2,"p99_us":2,"wrong":0})";

/// Of `bench train --json`, without the parts of a step.
constexpr const char* kSpeed = R"({"samples_per_second":100})";

/// Compares two files, or a file and a run's folder, with code `code`.
Provocation compare(int code, const std::string& a, const std::string& b,
                    const Arguments& flags = {}) {
  return {code, [=](const Stage& stage) {
            return ringlet(Arguments{"compare", stage.file("a", a), stage.file("b", b)} + flags);
          }};
}
/// A run of such metrics with itself.
Provocation compare_run(const std::string& metrics) {
  return {1, [=](const Stage& stage) {
            std::filesystem::create_directories(stage / "run");
            stage.file("run/metrics.jsonl", metrics);
            return ringlet({"compare", stage / "run", stage / "run"});
          }};
}
/// kRow with another word.
std::string row_with(const std::string& what, const std::string& by) {
  std::string row = kRow;
  return row.replace(row.find(what), what.size(), by);
}

Provocation simulate(const Arguments& flags) {
  return {2, [=](const Stage&) { return ringlet(Arguments{"simulate"} + flags); }};
}
/// With costs.
Provocation simulate_with_costs(const Arguments& flags) {
  return simulate(Arguments{"--alpha", "5us", "--beta", "50G"} + flags);
}
/// Rank 0's actions of a pipeline.
std::string traced(const std::vector<std::string>& actions) {
  std::string events;
  for (const std::string& action : actions) {
    events += (events.empty() ? "" : ",") + std::string(R"({"name":")") + action +
              R"(","cat":"pipeline","ph":"X","ts":0,"dur":1,"pid":0,"tid":1})";
  }
  return R"({"traceEvents":[)" + events + "]}";
}
/// Of a small model.
Provocation pipeline(const Arguments& flags) {
  return {
      2, [=](const Stage&) {
        return ringlet(Arguments{"pipeline", "--model", "lenet", "--balance", "planned"} + flags);
      }};
}
Provocation config(const std::string& toml) {
  return {2, [=](const Stage& stage) { return stage.configured(toml); }};
}

}  // namespace

std::vector<Provocation> provocations_by_flags() {
  return {
      // The command line.
      usage({}),
      usage({"trian"}),
      usage({"train", "--xyzzy-plugh"}),
      usage({"train", "--sync", "rign"}),
      usage({"train", "--epochs", "1.5"}),
      usage({"train", "--lr", "nan"}),
      usage({"train", "--clip-norm", "1e-46"}),
      usage({"train", "--momentum", "2"}),
      usage({"train", "--epochs"}),
      usage({"train", "--epochs", "1", "--epochs", "2"}),
      usage({"train", "--exact=5"}),
      usage({"train", "--devices", "fpga"}),
      usage({"train", "--devices", "gpu"}),
      usage({"train", "--device", "meta"}),
      usage({"train", "--resume", "a", "--init", "b"}),
      usage({"train", "--runs-at-once", "2"}),
      usage({"train", "--sweep", "lr"}),
      usage({"train", "--sweep", "lr=1,,2"}),
      usage({"train", "--sweep", "lr=1,1"}),
      usage({"train", "--sweep", "lrr=1,2"}),
      usage({"train", "--sweep", "xyzzy=1,2"}),
      usage({"train", "--sweep", "lr=1,2", "--lr", "1"}),
      usage({"train", "--sweep", "lr=1,nan"}),
      usage({"train", "--sweep", "seed=1,2"}),
      usage({"train", "--sweep", "out=a,b"}),
      usage({"train", "--sweep", "nesterov=1,2"}),
      usage({"train", "--seeds", "1,2", "--precision", "auto"}),
      usage_of_train({"--precision", "auto", "--exact"}),
      usage({"train", "--seeds", "a"}),
      usage({"train", "--seeds", "1..2000"}),
      usage({"train", "--seeds", "1,1"}),
      usage({"train", "--sweep", "lr=1,2", "lr=3"}),
      usage({"train", "--seeds", "1", "--processes"}),
      usage({"train", "--seeds", "1", "--resume", "a"}),
      {2,
       [](const Stage& stage) {
         return ringlet({"train", "--seeds", "1", "--out", stage.run()});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet(
             {"train", "--seeds", "1", "--out", stage.holding_sweep(R"({"flags":[],"runs":[]})")});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet(
             {"train", "--seeds", "1", "--resume", "auto", "--out", stage.holding_sweep("{}")});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet(
             {"train", "--seeds", "1", "--resume", "auto", "--out",
              stage.holding_sweep(R"({"kind":"ringlet sweep","flags":["--lr=1"],"runs":[]})")});
       }},
      usage({"train", "--data", "/no/such"}),
      usage({"train", "--data", "nosuch"}),
      {2,
       [](const Stage& stage) {
         return ringlet({"train", "--data", stage.file("a.txt", "")});
       }},
      usage({"inspect"}),
      usage({"--json", "devices"}),
      usage({"train", "--out", ""}),
      usage({"train", "--devices", "cpu:0,,cpu:0"}),
      usage({"train", "--data", "fashion-mnist", "--synthetic-train", "9"}),
      usage_of_train({"--accumulate", "2147483647"}),
      usage_of_train({"--image-size", "32"}),
      usage_of_train({"--normalize", "imagenet"}),
      usage_of_train({"--class-weights", "1,2"}),
      usage_of_train({"--loss", "arcface", "--margin", "half"}),
      usage_of_train({"--loss", "arcface", "--margin", "3.2"}),
      usage_of_train({"--init-centres", "c.safetensors"}),
      usage_of_train({"--best-by", "loss", "--loss", "arcface"}),
      usage_of_train({"--patience", "2", "--loss", "arcface"}),
      usage_of_train({"--verify-every", "5"}),
      usage_of_train({"--verify", "a.bin,,b.bin"}),
      usage_of_train({"--verify", "a.bin,./a.bin"}),
      usage_of_train({"--metrics", "both", "--trace", "both"}),
      usage_of_train({"--exact", "--replicas", "3"}),
      usage_of_train({"--exact", "--replicas", "2", "--sync", "ring"}),
      usage_of_train({"--sync", "two-shot", "--replicas", "2", "--transport", "nccl"}),
      usage_of_train({"--exact", "--grad-dtype", "bf16"}),
      usage_of_train({"--precision", "bf16"}),
      usage_of_train({"--cycle-momentum", "--schedule", "cosine"}),
      usage_of_train({"--grad-dtype", "bf16-between", "--sync", "ring", "--replicas", "2"}),
      usage_of_train({"--tf32", "--precision", "f16"}),
      usage_of_train({"--exact", "--batch-norm", "world"}),
      usage_of_train({"--replicas", "4", "--class-shards", "2", "--loss", "arcface"}),
      usage_of_train({"--replicas", "4", "--shards", "2"}),
      usage_of_train({"--transport", "nccl"}),
      usage_of_train({"--transport", "shm"}),
      usage_of_train({"--transport", "local", "--processes", "2"}),
      usage_of_train({"--transport", "local", "--sync", "nccl"}),
      usage({"train", "--devices", "cpu,cuda:0"}),
      usage({"bench", "train", "--why"}),
      usage({"bench", "train", "--why", "--replicas", "4", "--batch-size", "3"}),
      usage({"bench", "train", "--why", "--replicas", "1,2"}),
      usage({"bench", "train", "--replicas", "1,2,1"}),
      usage({"bench", "train", "--replicas", "1,4", "--batch-size", "3"}),
      usage({"bench", "train", "--synthetic-train", "8", "--batch-size", "8", "--replicas", "1,2",
             "--batch", "per-replica"}),
      usage({"bench", "train", "--replicas", "1,2", "--stages", "2"}),
      usage({"bench", "train", "--replicas", "2", "--batch", "per-replica"}),
      {2,
       [](const Stage&) {
         return ringlet({"bench", "train", "--replicas", "1,2"}, {.environment = kFirstOfTwo});
       }},
      {2,
       [](const Stage&) {
         return ringlet({"bench", "train", "--why", "--replicas", "2"},
                        {.environment = kFirstOfTwo});
       }},
      {2,
       [](const Stage& stage) {
         return quick({"--out", stage.run()});
       }},
      {2,
       [](const Stage& stage) {
         stage.run();
         return stage.resume({"--lr", "7"});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet({"report", stage / ".", "--out", stage.file("page", "")});
       }},
      {2, [](const Stage&) { return ringlet(Arguments{"report"} + Arguments(9, "run")); }},
      {2,
       [](const Stage& stage) {
         stage.file("epochs.csv", "mine");
         return quick({"--out", stage / "."});
       }},
      {2,
       [](const Stage& stage) {
         const std::string model = stage.run() + "/model.safetensors";
         return ringlet({"export", "--checkpoint", model, "--onnx", model, "--force"});
       }},
      // Configurations and variables.
      usage_of_train({"--config", "/no/such"}),
      usage_of_train({}, {{"RINGLET_CONFIG", "/no/such"}}),
      config("batch-size = [[1]]\n"),
      config("batch-size = \n"),
      config("[table]\na = 1\n"),
      config("lr = \u01ab\n"),
      config("model = '''lenet'''\n"),
      config("bach-size = 7\n"),
      config("xyzzyplugh = 7\n"),
      usage_of_train({}, {{"RINGLET_INIT", "a"}, {"RINGLET_RESUME", "b"}}),
      config("exact = 5\n"),
      config("seeds = '1,2'\n"),
      config("momentum = [1, 2]\n"),
      config("lr = 'x'\n"),
      config("schedule = \"a\\u0000b\"\n"),
      config(std::string(70'000, '#')),
      config(std::string(5'000, '.')),
      usage_of_train({}, {{"RINGLET_EXACT", "perhaps"}}),
      // Positions of processes.
      usage_of_train({"--processes"}),
      usage_of_train({"--processes"}, {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "2"}}),
      usage_of_train({"--processes", "2"}, kFirstOfTwo),
      refused_process({{"RANK", "one"}, {"WORLD_SIZE", "2"}}),
      refused_process({{"RANK", "0"}}),
      refused_process({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
      refused_process({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
      refused_process({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
      refused_process(
          {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}),
      refused_process(first_of_two_with("RINGLET_HUB", "node1")),
      refused_process(first_of_two_with("MASTER_ADDR", "0.0.0.0")),
      refused_process(first_of_two_with("RINGLET_TOKEN", std::string(20'000, 'x'))),
      refused_process(first_of_two_with("RINGLET_TOKEN", "")),
      refused_process(first_of_two_with("LOCAL_WORLD_SIZE", "3")),
      refused_process(first_of_two_with("LOCAL_RANK", "1")),
      // Devices and runs.
      {1,
       [](const Stage&) {
         return quick({"--devices", "cuda:99"});
       }},
      {2,
       [](const Stage&) {
         return quick({}, {{"RINGLET_ISA", "mmx"}});
       }},
      usage_of_train({"--devices", "cuda:0,cuda:0", "--transport", "nccl"}),
      {1,
       [](const Stage&) {
         return quick({"--devices", "cpu:7"});
       }},
      {5,
       [](const Stage&) {
         return quick({"--lr", "1e30", "--epochs", "3"});
       }},
      {5,
       [](const Stage&) {
         return quick({"--lr", "1e39", "--schedule", "constant", "--batch-size", "256"});
       }},
      {5,
       [](const Stage&) {
         return quick(
             {"--lr", "1000", "--schedule", "constant", "--replicas", "2", "--grad-dtype", "f16"});
       }},
      {5,
       [](const Stage&) {
         return quick({"--lr", "1e30", "--schedule", "constant", "--batch-size", "8", "--precision",
                       "f16", "--emulate-precision"});
       }},
      {1, [](const Stage&) { return as_process(kFirstOfTwo); }},
      {1, [](const Stage&) { return outlive_the_other(); }},
      {1, [](const Stage&) { return wait_for_a_stopped_one(); }},
      {1, [](const Stage&) { return lose_both(); }},
      {1,
       [](const Stage&) {
         return outlive_the_other({"--stages", "2"});
       }},
      {1,
       [](const Stage&) {
         return wait_for_a_stopped_one({"--stages", "2"});
       }},
      {1,
       [](const Stage&) {
         return lose_both({"--stages", "2"});
       }},
      {1, [](const Stage&) { return come_twice_as_first(); }},
      {1, [](const Stage&) { return come_twice_as_second(); }},
      {1, [](const Stage&) { return wait_for_one_that_cannot_begin(); }},
      {1,
       [](const Stage&) {
         return disagree({"--lr", "0.1"}, {"--lr", "0.2"});
       }},
      {1,
       [](const Stage&) {
         return disagree({"--replicas", "1"}, {"--replicas", "2"});
       }},
      {1, [](const Stage&) { return as_process(first_of_two_with("RANK", "1")); }},
      // ringlet bench all-reduce.
      bench({"--begin", "8K", "--end", "4K"}),
      bench({"--begin", "1"}),
      bench({"--begin", "4", "--end", "4G", "--step", "4"}),
      collective("all-gather", {"--begin", "4"}),
      collective("broadcast", {"--root", "2"}),
      collective("broadcast", {"--csv", "-", "--format", "nccl"}),
      {2,
       [](const Stage&) {
         return ringlet({"bench", "all-gather", "--processes"},
                        {.environment = first_of_two_with("WORLD_SIZE", "1")});
       }},
      bench({"--budget", "0"}),
      bench({"--devices", "cpu,cpu", "--ranks", "3"}),
      bench({"--devices", "cpu:0"}),
      bench({"--strategies", "nccl"}),
      bench({"--strategies", "one-shot", "--processes", "--transport", "gloo"}),
      bench({"--type", "bf16", "--op", "mean", "--ranks", "17"}),
      bench({"--ranks", "2,3", "--processes", "--trace", "t.json"}),
      bench({"--no-measure", "--report", "page.html"}),
      bench({"--no-measure", "--with", "rows.json", "--json", "figures.json"}),
      {1,
       [](const Stage& stage) {
         return ringlet({"bench", "all-reduce", "--no-measure", "--with", stage.file("rows", "{}"),
                         "--report", stage / "page"});
       }},
      // ringlet compare.
      compare(1, "", kRow),
      compare(1, kSpeed, kSpeed),
      compare(1, kRow, R"({"samples_per_second":100,"device":"cuda:0"})"),
      compare(1, kRow, row_with("ring\"", "tree\"")),
      compare_run(""),
      compare_run(R"({"kind":"epoch","epoch":1,"seconds":0,"samples_per_second":1})"),
      compare_run(R"({"kind":"epoch","epoch":1,"seconds":1,"samples_per_second":0})"),
      compare(4, kRow, std::string(kRow) + "\n" + row_with("\"ranks\":2", "\"ranks\":3"),
              {"--strict"}),
      compare(4, kRow, row_with("_us\":2", "_us\":3"), {"--fail-over", "1.05"}),
      compare(4, kRow, row_with("\"wrong\":0", "\"wrong\":2"), {"--strict"}),
      compare(4, kRow, row_with("\"wrong\":0", "\"wrong\":0,\"counts\":false"), {"--strict"}),
      // ringlet simulate.
      simulate({"--alpha", "5"}),
      simulate({"--beta", "0"}),
      simulate({"--machines", "3x", "--ranks", "8"}),
      simulate({"--slow", "1:3"}),
      simulate({"--alpha", "5us"}),
      simulate_with_costs({"--bytes", "2"}),
      simulate_with_costs({"--bytes", "2048G"}),
      simulate_with_costs({"--machines", "4x2", "--ranks", "7"}),
      simulate_with_costs({"--ranks", "8", "--slow", "8:3x"}),
      simulate_with_costs({"--slow", "1:3x,1:4x"}),
      simulate_with_costs({"--ranks", "2,4", "--trace", "t.json"}),
      simulate_with_costs({"--ranks", "65", "--trace", "t.json"}),
      {2,
       [](const Stage& stage) {
         return ringlet({"simulate", "--alpha", "5us", "--beta", "50G", "--ranks", "2",
                         "--strategies", "nccl", "--trace", stage / "t.json"});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet({"simulate"}, {.environment = {{"XDG_CACHE_HOME", stage / "none"}}});
       }},
      {2,
       [](const Stage& stage) {
         std::filesystem::create_directories(stage / "ringlet");
         (void)stage.file("ringlet/" + train::tuning_file().filename().string(),
                          R"({"processor": "an abacus", "ranges": []})");
         return ringlet({"simulate"}, {.environment = {{"XDG_CACHE_HOME", stage / "."}}});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet({"simulate", "--machines", "4x2", "--from", stage.file("rows", kRow)});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet({"simulate", "--alpha", "5us", "--beta", "50G", "--ranks", "3",
                         "--measured", stage.file("rows", kRow)});
       }},
      // ringlet pipeline.
      pipeline({"--image", "28x28"}),
      pipeline({"--batch-size", "2", "--replicas", "4"}),
      pipeline({"--micro-batches", "400"}),
      pipeline({"--link", "5G"}),
      pipeline({"--device", "cpu", "--stages", "conv1..pool1=cpu:0,conv2..fc2=cpu:1"}),
      pipeline({"--replicas", "2", "--stages", "conv1..pool1=cpu:0,conv2..fc2=cpu:1"}),
      pipeline({"--stages", "conv1..pool1=cpu:0,conv2..fc2=cuda:1"}),
      pipeline({"--stages", "conv1..pool1=cuda:3-1,conv2..fc2=cuda:1"}),
      {2,
       [](const Stage& stage) {
         return ringlet({"pipeline", "--from", stage.file("step", traced({"F0", "B0", "sync"})),
                         "--step", "3"});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"pipeline", "--from", stage.file("none", traced({}))});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"pipeline", "--from", stage.file("half", traced({"F0"}))});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"pipeline", "--from", stage.file("other", traced({"G0"}))});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet(
             {"pipeline", "--from", stage.file("first", traced({"F0", "send a0 to 1", "sync"}))});
       }},
      pipeline({"--memory", "1K"}),
      {1,
       [](const Stage&) {
         return ringlet({"pipeline", "--model", "lenet", "--balance", "planned", "--memory", "1K",
                         "--stages", "conv1..pool1,conv2..fc2"});
       }},
      pipeline({"--stages", "12"}),
      pipeline({"--stages", "conv1..pool1,conv2..fc4"}),
      pipeline({"--stages", "conv1..pool1"}),
      pipeline({"--stages", "conv1..conv2,conv2..fc2"}),
      pipeline({"--stages", "conv1,conv1"}),
      pipeline({"--stages", "conv2..fc2,conv1..pool1"}),
      pipeline({"--stages", "conv1..pool1,"}),
      pipeline({"--stages", "conv1..,conv2..fc2"}),
      pipeline({"--stages", "pool1..conv1,conv2..fc2"}),
      pipeline({"--stages", "conv1..pool1=,conv2..fc2"}),
      pipeline({"--stages", "conv1..pool1=cpu:0,conv2..fc2"}),
      pipeline({"--stages", "conv1,relu1..fc2"}),
      usage_of_train({"--stages", "0"}),
      usage_of_train({"--stages", "2", "--devices", "cpu:0,cpu:0,cpu:0"}),
      usage_of_train({"--stages", "conv1..pool1=cpu:0,conv2..fc2=cpu:0-1"}),
      usage_of_train({"--stages", "conv1..pool1=cpu:0,conv2..fc2=cpu:0", "--processes", "2"}),
      usage_of_train({"--stages", "2", "--processes", "3"}),
      usage_of_train({"--stages", "2", "--verify", "a.bin"}),
      usage_of_train({"--recompute", "stage"}),
      usage_of_train({"--stages", "flatten,fc1..fc3", "--model", "mlp"}),
      usage_of_train({"--stages", "2", "--model", "resnet50", "--optimizer", "adamw", "--replicas",
                      "512", "--synthetic-train", "512", "--batch-size", "512", "--micro-batches",
                      "1", "--balance", "planned"}),
      usage({"bench", "train", "--stages", "2", "--why"}),
  };
}

}  // namespace ringlet::testing
