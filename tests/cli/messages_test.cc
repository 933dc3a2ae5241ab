// The messages that a user can get, provoked with the program itself, and docs/troubleshooting.md,
// which explains them. Each provocation has to end in exactly one message of the page, word for
// word. Each message has to be provoked, but for those that message_sources_test.cc looks for.
#include <algorithm>
#include <functional>
#include <map>
#include <regex>

#include "tests/cli/failing_processes.h"
#include "tests/cli/program.h"
#include "tests/cli/troubleshooting.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

/// Where a provocation may leave its files.
class Stage {
 public:
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

  std::string file(const std::string& name, const std::string& bytes) const {
    write_file(folder_ / name, bytes);
    return folder_ / name;
  }

  /// Trains on a good data set, of which `name` holds `bytes` instead.
  Outcome train_on(const char* name, const std::string& bytes) const {
    write_small_set(folder_.path());
    file(name, bytes);
    return ringlet({"train", "--model", "mlp", "--data", folder_.path(), "--epochs", "1"});
  }

  /// Takes the weights from a file that holds `bytes`.
  Outcome init_from(const std::string& bytes) const {
    return ringlet(quick_train({"--init", file("w.safetensors", bytes)}));
  }

  /// A run of four steps in OUT.
  std::string run(const Arguments& changes = {}) const {
    EXPECT_TRUE(succeeds(ringlet(quick_train(Arguments{"--out", *this / "out"} + changes))));
    return *this / "out";
  }

  /// Resumes a run in whose state.json `what` was replaced by `by`.
  Outcome resume_with(const std::string& what, const std::string& by) const {
    const std::string json = run() + "/state/state.json";
    std::string text = read_file(json);
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    write_file(json, text.replace(at, what.size(), by));
    return resume();
  }
  Outcome resume(const Arguments& more = {}) const {
    return ringlet(Arguments{"train", "--resume", *this / "out"} + more);
  }

  Outcome configured(const std::string& toml) const {
    return ringlet(quick_train({"--config", file("c.toml", toml)}));
  }

 private:
  TemporaryDirectory folder_;
};

std::string safetensors(const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  length[1] = static_cast<char>(header.size() >> 8);
  return length + header + data;
}

std::string tensor(const std::string& fields) {
  return safetensors(R"({"a":{)" + fields + "}}", "1234");
}

Outcome quick(const Arguments& changes, const Environment& environment = {}) {
  return ringlet(quick_train(changes), {.environment = environment});
}

Outcome in_place(const Environment& environment) {
  return quick({"--processes", "--comm-timeout", "1"}, environment);
}

/// The head of a process's timeline.
std::string of_process(const std::string& number) {
  return R"({"displayTimeUnit":"ms","otherData":{"process":)" + number +
         R"(,"host":"a","origin_ns":1,"clock":[[1,0,0]]},"traceEvents":[)" + "\n";
}

struct Provocation {
  int code;
  std::function<Outcome(const Stage&)> provoke;
};

/// The variables of the first of two processes.
const Environment kPlace = first_of_two();

/// The first of two processes, with one variable more.
Environment placed_with(const std::string& name, const std::string& value) {
  Environment variables = kPlace;
  variables[name] = value;
  return variables;
}

Provocation usage(const Arguments& arguments) {
  return {2, [=](const Stage&) { return ringlet(arguments); }};
}
Provocation usage_of_train(const Arguments& changes, const Environment& environment = {}) {
  return {2, [=](const Stage&) { return quick(changes, environment); }};
}
Provocation misplaced(const Environment& environment) {
  return {2, [=](const Stage&) { return in_place(environment); }};
}
Provocation bench(const Arguments& flags) {
  return {2, [=](const Stage&) { return ringlet(Arguments{"bench", "all-reduce"} + flags); }};
}
Provocation config(const std::string& toml) {
  return {2, [=](const Stage& stage) { return stage.configured(toml); }};
}
Provocation data(const char* file, const std::string& bytes) {
  return {1, [=](const Stage& stage) { return stage.train_on(file, bytes); }};
}
Provocation weights(const std::string& bytes) {
  return {1, [=](const Stage& stage) { return stage.init_from(bytes); }};
}
Provocation state(const std::string& what, const std::string& by) {
  return {1, [=](const Stage& stage) { return stage.resume_with(what, by); }};
}
/// A picture that is shown to a model.
Provocation shown(const std::string& picture) {
  return {1, [=](const Stage& stage) {
            return ringlet({"predict", "--checkpoint", stage.run(), stage.file("p", picture)});
          }};
}
/// Runs `command` with the checkpoint of a run on drawn garments.
Outcome with_model(const Stage& stage, const char* command, const Arguments& more) {
  return ringlet(Arguments{command, "--checkpoint", stage.run()} + more);
}
/// The run's model in a file of its own, with each of its numbers NaN.
std::string broken_model(const Stage& stage) {
  std::string bytes = read_file(stage.run() + "/model.safetensors");
  const std::size_t header = 8 + static_cast<unsigned char>(bytes[0]) +
                             (std::size_t{static_cast<unsigned char>(bytes[1])} << 8);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end(), '\xff');
  return stage.file("nan", bytes);
}
/// A model that was trained on a folder of small images.
std::string trained_on_a_folder(const Stage& stage, const std::string& folder) {
  fs::create_directory(folder);
  write_small_set(folder);
  std::string out = stage / "small";
  EXPECT_TRUE(succeeds(ringlet({"train", "--model", "mlp", "--data", folder, "--epochs", "1",
                                "--batch-size", "10", "--out", out})));
  return out;
}
Provocation inspected(const std::string& bytes) {
  return {1, [=](const Stage& stage) { return ringlet({"inspect", stage.file("f", bytes)}); }};
}

/// A timeline merged with process 0's.
Provocation merged(const std::string& bytes) {
  return {1, [=](const Stage& stage) {
            const std::string own = stage.file("t.json", of_process("0") + "]}\n");
            return ringlet({"trace", "merge", own, stage.file("f", bytes), "--out", stage / "all"});
          }};
}

/// 32 members of 4 MiB of zeros, each packed into 4 KiB.
std::string bomb() {
  const std::string member = gzip(std::string(1 << 22, '\0'));
  std::string bytes = gzip(idx_header(8, {1 << 13, 1 << 10, 1 << 10}));
  for (int i = 0; i < 32; ++i) bytes += member;
  return bytes;
}

/// Trains on a folder with such files, none of them a picture.
Provocation folder_with(const std::vector<std::string>& files) {
  return {
      1, [=](const Stage& stage) {
        for (const std::string& name : files) {
          fs::create_directories(fs::path(stage / name).parent_path());
          stage.file(name, "hello");
        }
        return ringlet({"train", "--data", stage / ".", "--cache", stage / "pixels", "--no-out"});
      }};
}
/// Trains on a folder of two photographs, which nothing decodes.
Provocation photographs_with(const Arguments& flags) {
  return {2, [=](const Stage& stage) {
            for (const char* part : {"train/a", "val/a"}) {
              fs::create_directories(stage / part);
              stage.file(std::string(part) + "/x.png", "hello");
            }
            return ringlet(Arguments{"train", "--data", stage / ".", "--no-out"} + flags);
          }};
}

/// Trains on files of CIFAR-10's names and this size, whose first label is 11.
Outcome cifar_of(const Stage& stage, std::uintmax_t bytes) {
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    fs::resize_file(stage.file(name, "\x0b"), bytes);
  }
  return ringlet({"train", "--data", "cifar-10", "--data-dir", stage / "."});
}

const std::string kStep = R"({"kind":"step","epoch":1,"step":1,"loss":2,"lr":1,"samples":8})";

std::vector<Provocation> provocations() {
  const std::string images = idx({20, 4, 5}), labels = idx({20}, 10);
  const std::string scalar = R"("dtype":"F32","shape":[],"data_offsets":)";
  return {
      // The command line.
      usage({}),
      usage({"trian"}),
      usage({"train", "--xyzzy-plugh"}),
      usage({"train", "--sync", "rign"}),
      usage({"train", "--epochs", "1.5"}),
      usage({"train", "--lr", "nan"}),
      usage({"train", "--momentum", "2"}),
      usage({"train", "--epochs"}),
      usage({"train", "--epochs", "1", "--epochs", "2"}),
      usage({"train", "--exact=5"}),
      usage({"train", "--devices", "fpga"}),
      usage({"train", "--devices", "gpu"}),
      usage({"train", "--device", "meta"}),
      usage({"train", "--resume", "a", "--init", "b"}),
      usage({"train", "--data", "/no/such"}),
      usage({"inspect"}),
      usage({"--json", "devices"}),
      usage({"train", "--out", ""}),
      usage({"train", "--devices", "cpu:0,,cpu:0"}),
      usage({"train", "--data", "fashion-mnist", "--synthetic-train", "9"}),
      usage_of_train({"--accumulate", "2147483647"}),
      usage_of_train({"--image-size", "32"}),
      usage_of_train({"--normalize", "imagenet"}),
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
      usage_of_train({"--replicas", "4", "--shards", "2"}),
      usage_of_train({"--transport", "nccl"}),
      usage_of_train({"--transport", "shm"}),
      usage_of_train({"--transport", "local", "--processes", "2"}),
      usage_of_train({"--transport", "local", "--sync", "nccl"}),
      usage({"train", "--devices", "cpu,cuda:0"}),
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
      config("batch-size = [[1]]\n"),
      config("batch-size = \n"),
      config("[table]\na = 1\n"),
      config("lr = \u01ab\n"),
      config("model = '''lenet'''\n"),
      config("bach-size = 7\n"),
      config("xyzzyplugh = 7\n"),
      usage_of_train({}, {{"RINGLET_INIT", "a"}, {"RINGLET_RESUME", "b"}}),
      config("exact = 5\n"),
      config("momentum = [1, 2]\n"),
      config("lr = 'x'\n"),
      config("schedule = \"a\\u0000b\"\n"),
      config(std::string(70'000, '#')),
      config(std::string(5'000, '.')),
      usage_of_train({}, {{"RINGLET_EXACT", "perhaps"}}),
      // Places of processes.
      usage_of_train({"--processes"}),
      usage_of_train({"--processes", "2"}, kPlace),
      misplaced({{"RANK", "one"}, {"WORLD_SIZE", "2"}}),
      misplaced({{"RANK", "0"}}),
      misplaced({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
      misplaced({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
      misplaced({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
      misplaced(
          {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}),
      misplaced(placed_with("RINGLET_HUB", "node1")),
      misplaced(placed_with("LOCAL_WORLD_SIZE", "3")),
      misplaced(placed_with("LOCAL_RANK", "1")),
      // Data.
      {2,
       [](const Stage& stage) {
         const std::string folder = stage / "d\xff";
         fs::create_directory(folder);
         return ringlet({"train", "--data", folder});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"train", "--data", stage / "."});
       }},
      {1,
       [](const Stage&) {
         return ringlet({"train", "--data", "fashion-mnist", "--data-dir", "/no/such"});
       }},
      {1,
       [](const Stage& stage) {
         write_small_set(stage / ".");
         return ringlet({"train", "--data", "fashion-mnist", "--data-dir", stage / "."});
       }},
      data(kTrainImages, images.substr(0, 40)),
      data(kTrainImages, images + "x"),
      data(kTrainImages, gzip(images + "x")),
      data(kTrainImages, "hello, this is no IDX file"),
      data(kTrainImages, idx_header(13, {20, 4, 5}) + std::string(1600, '\0')),
      data(kTrainImages, labels),
      data(kTrainImages, idx_header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})),
      data(kTrainImages, gzip(images).substr(0, 20)),
      data(kTrainImages, gzip(images).replace(gzip(images).size() - 8, 4, "????")),
      data(kTrainImages, gzip(images) + "x"),
      data(kTrainImages, bomb()),
      data(kTrainLabels, idx({19}, 10)),
      data(kTrainLabels, idx_header(8, {20}) + std::string(20, '\x0b')),
      data(kTestImages, idx({10, 5, 5})),
      data(kTestLabels, idx_header(8, {10}) + std::string(10, '\x0b')),
      photographs_with({"--crop-from", "40"}),
      photographs_with({"--cache", "memory", "--augment", "random-resized-crop"}),
      folder_with({"train/a/x.png"}),
      folder_with({"train/note.txt", "val/a/x.png"}),
      folder_with({"train/a/x.txt", "val/a/x.png"}),
      folder_with({"train/a/x.png", "val/b/x.png"}),
      folder_with({"train/a/x.png", "val/a/x.png", "pixels.train"}),
      {1,
       [](const Stage&) {
         return ringlet({"train", "--data", "cifar-10"});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"train", "--data", "cifar-10", "--data-dir", stage / "."});
       }},
      {1, [](const Stage& stage) { return cifar_of(stage, 5000); }},
      {1, [](const Stage& stage) { return cifar_of(stage, 30'730'000); }},
      // Weights.
      {1,
       [](const Stage&) {
         return quick({"--init", "/no/such"});
       }},
      {1,
       [](const Stage&) {
         return quick({"--init", "/dev/null"});
       }},
      weights("short"),
      {1,
       [](const Stage& stage) {
         return ringlet(quick_train({"--init", stage.file("w.pth", "")}));
       }},
      weights(std::string(16, '\xff')),
      weights(std::string(1, '\x7f') + std::string(7, '\0') + "{}"),
      weights(safetensors("[]")),
      weights(safetensors("{\"a\":")),
      weights(safetensors(R"({"a":1,"a":2})")),
      weights(safetensors("{\"a\":" + std::string(100, '['))),
      weights(safetensors(R"({"__metadata__":7})")),
      weights(safetensors(R"({"__metadata__":{"k":7}})")),
      weights(safetensors(R"({"a":3})")),
      weights(tensor(R"("dtype":"F32","shape":[])")),
      weights(tensor(scalar + R"([0,4],"more":1)")),
      weights(tensor(R"("dtype":"F3","shape":[],"data_offsets":[0,4])")),
      weights(tensor(R"("dtype":3,"shape":[],"data_offsets":[0,4])")),
      weights(tensor(R"("dtype":"F32","shape":3,"data_offsets":[0,4])")),
      weights(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])")),
      weights(tensor(scalar + "[4,0]")),
      weights(tensor(scalar + "[0,3]")),
      weights(tensor(R"("dtype":"F32","shape":[4611686018427387904,2],"data_offsets":[0,4])")),
      weights(tensor(scalar + "[1,5]")),
      weights(tensor(scalar + R"([0,4]},"b":{)" + scalar + "[2,6]")),
      weights(tensor(scalar + "[0,4]") + "5"),
      weights(safetensors(R"({"a":{)" + scalar + "[0,4]}}", "123")),
      weights(tensor(scalar + "[0,4]")),
      {1,
       [](const Stage& stage) {
         const std::string header = R"({"__metadata__":{"ringlet.model":"lenet"}})";
         return ringlet({"eval", "--checkpoint", stage.file("w", safetensors(header))});
       }},
      // States.
      {1,
       [](const Stage& stage) {
         return ringlet({"train", "--resume", stage / "."});
       }},
      {2,
       [](const Stage&) {
         return quick({"--resume", "auto"}, {{"RINGLET_NO_OUT", "0"}});
       }},
      {1,
       [](const Stage& stage) {
         write_file(stage.run() + "/state/state.json", "{{");
         return quick({"--out", stage / "out", "--resume", "auto"});
       }},
      state("{", "{{"),
      state("\"format\": 1", "\"format\": 99"),
      state("\"format\"", "\"former\""),
      state("\"step\": 4", "\"step\": -4"),
      state("\"epoch_samples\": 0", "\"epoch_samples\": -1"),
      state("\"step\": 4", "\"step\": 999999999"),
      state(
          "\"recipe\"",
          R"("loss_scale": {"scale": 3, "good_steps": 0, "skips": 0, "skips_in_row": 0}, "recipe")"),
      state(
          "\"recipe\"",
          R"("loss_scale": {"scale": 2, "good_steps": 0, "skips": -1, "skips_in_row": 0}, "recipe")"),
      state("\"lr\"", "\"rate\""),
      state("\"lr\"", "\"more\": 1, \"lr\""),
      {1,
       [](const Stage& stage) {
         const std::string folder = stage / "images";
         const std::string out = trained_on_a_folder(stage, folder);
         write_file(folder + "/" + kTrainImages, idx({20, 4, 5}, 200));
         return ringlet({"train", "--resume", out});
       }},
      // What is written.
      {1,
       [](const Stage& stage) {
         return ringlet(quick_train({"--out", stage / "o"}), {.file_size_limit = 1000});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--out", stage.file("f", "") + "/o"});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--metrics", stage / "none/m"});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--metrics", stage / "."});
       }},
      {1,
       [](const Stage&) {
         return quick({"--metrics", "/dev/full"});
       }},
      {1,
       [](const Stage&) {
         return quick({"--trace", "/dev/null"});
       }},
      {1,
       [](const Stage& stage) {
         Program live(quick_train({"--epochs", "100000", "--lr", "0.001", "--out", stage / "o"}));
         EXPECT_TRUE(live.wait_for("epoch   train loss"));
         return quick({"--out", stage / "o", "--force"});
       }},
      {3,
       [](const Stage&) {
         return Program(ShellLine{RINGLET_PROGRAM " --version > /dev/full"}).wait();
       }},
      // Devices and runs.
      {1,
       [](const Stage&) {
         return quick({"--devices", "cuda:99"});
       }},
      {1,
       [](const Stage&) {
         return quick({}, {{"RINGLET_ISA", "mmx"}});
       }},
      usage_of_train({"--devices", "cuda:0,cuda:0", "--transport", "nccl"}),
      {1,
       [](const Stage&) {
         return quick({"--devices", "cpu:7"});
       }},
      {1,
       [](const Stage&) {
         return quick({"--lr", "1e30", "--epochs", "3"});
       }},
      {1,
       [](const Stage&) {
         return quick(
             {"--lr", "1000", "--schedule", "constant", "--replicas", "2", "--grad-dtype", "f16"});
       }},
      {1,
       [](const Stage&) {
         return quick({"--lr", "1e30", "--schedule", "constant", "--batch-size", "8", "--precision",
                       "f16", "--emulate-precision"});
       }},
      {1, [](const Stage&) { return in_place(kPlace); }},
      {1, [](const Stage&) { return outlive_the_other(); }},
      {1, [](const Stage&) { return wait_for_a_stopped_one(); }},
      {1, [](const Stage&) { return lose_both(); }},
      {1, [](const Stage&) { return come_twice_as_first(); }},
      {1, [](const Stage&) { return come_twice_as_second(); }},
      {1,
       [](const Stage&) {
         return disagree({"--lr", "0.1"}, {"--lr", "0.2"});
       }},
      {1,
       [](const Stage&) {
         return disagree({"--replicas", "1"}, {"--replicas", "2"});
       }},
      {1, [](const Stage&) { return in_place(placed_with("RANK", "1")); }},
      // ringlet bench all-reduce.
      bench({"--begin", "8K", "--end", "4K"}),
      bench({"--begin", "1"}),
      bench({"--devices", "cpu,cpu", "--ranks", "3"}),
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
      // Models that are asked.
      usage({"predict", "--checkpoint", "a"}),
      usage({"predict", "--checkpoint", "a", "b", "--data", "synthetic"}),
      {2,
       [](const Stage& stage) {
         return with_model(stage, "eval", {"--model", "lenet"});
       }},
      {2, [](const Stage& stage) { return with_model(stage, "eval", {"--no-normalize"}); }},
      {2,
       [](const Stage& stage) {
         const std::string model = trained_on_a_folder(stage, stage / "images");
         return ringlet({"eval", "--checkpoint", model, "--data", "synthetic"});
       }},
      {2,
       [](const Stage& stage) {
         const std::string model = trained_on_a_folder(stage, stage / "images");
         fs::remove_all(stage / "images");
         return ringlet({"eval", "--checkpoint", model});
       }},
      {1,
       [](const Stage& stage) {
         std::string bytes = read_file(stage.run() + "/model.safetensors");
         const std::string mean = R"("ringlet.mean":")";
         bytes[bytes.find(mean) + mean.size()] = '?';
         return ringlet({"eval", "--checkpoint", stage.file("w", bytes)});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"predict", "--checkpoint", broken_model(stage),
                         stage.file("p.pgm", "P5 1 1 255\n7")});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"predict", "--checkpoint", broken_model(stage), "--data", "synthetic",
                         "--synthetic-test", "8"});
       }},
      // Pictures.
      {1, [](const Stage& stage) { return with_model(stage, "predict", {stage / "."}); }},
      shown(""),
      shown("hello"),
      shown("P5 4 4 255\nab"),
      shown("P5 99999 99999 255\nab"),
      {1,
       [](const Stage& stage) {
         const std::string large = stage.file("large.png", "");
         fs::resize_file(large, (std::uintmax_t{64} << 20) + 1);
         return with_model(stage, "predict", {large});
       }},
      {1,
       [](const Stage& stage) {
         Outcome outcome =
             with_model(stage, "predict", {stage.file("a.png", "a"), stage.file("b.png", "b")});
         outcome.err.erase(0, outcome.err.find("ringlet: error: "));  // behind the warnings
         outcome.out.clear();
         return outcome;
       }},
      // Reports.
      {1,
       [](const Stage& stage) {
         return ringlet({"report", stage / "none", "--out", stage / "page"});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"report", stage / ".", "--out", stage / "page"});
       }},
      {1,
       [](const Stage& stage) {
         fs::create_directory(stage / "metrics.jsonl");
         return ringlet({"report", stage / ".", "--out", stage / "page"});
       }},
      // ringlet inspect.
      {1,
       [](const Stage& stage) {
         const std::string run = stage.run();
         fs::resize_file(run + "/state/state.json", 2 << 20);
         return ringlet({"inspect", run});
       }},
      inspected("\x89PNG"),
      {1,
       [](const Stage& stage) {
         return ringlet({"inspect", stage / "."});
       }},
      {1,
       [](const Stage&) {
         return ringlet({"inspect", "/dev/null"});
       }},
      inspected(kStep + "\n{\"kind\"\n\n"),
      inspected(kStep + "\n[1]\n"),
      inspected("{\"kind\":\"step\"}\n"),
      inspected("{\"kind\":\"epoch\",\"epoch\":\"1\"}\n"),
      inspected(kStep + "\n" + std::string(70'000, ' ') + "\n"),
      inspected(R"({"traceEvents":[{"ph":"X","name":"n","ts":1}]})"),
      inspected(R"({"traceEvents":[{"ph":"X","name":"n","ts":1,"dur":-1}]})"),
      inspected(R"({"traceEvents":[{"ph")"),
      merged(R"({"traceEvents":[)"),
      merged(of_process("0") + "\n"),
      merged(of_process("1") + "{]\n"),
      merged(of_process("1") + R"({"name":"process_name","ph":"M","args":{}})" + "\n]}\n"),
      inspected(R"({"a":"traceEvents","traceEvents":7})"),
      inspected(R"({"traceEvents":)" + std::string(100, '[')),
  };
}

/// The regular expression that a message is, placeholders and all.
std::regex pattern_of(const std::string& message) {
  static const std::regex kSpecial(R"([.^$|()\[\]{}*+?\\])");
  std::string text = std::regex_replace(message, kSpecial, R"(\$&)");
  for (const auto& [placeholder, meaning] :
       std::map<std::string, std::string>{{"<n>", R"(-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?)"},
                                          {"<word>", "[^ ']+"},
                                          {"<command>", "ringlet(?: [a-z]+)*"},
                                          {"<text>", ".+"}}) {
    for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
      text.replace(at, placeholder.size(), meaning);
    }
  }
  return std::regex(text);
}

/// Names the package without which this build cannot be asked; empty where it is there.
std::string lacking(const std::string& err) {
  for (const char* package : {"libtomlplusplus-dev", "libgloo-dev"}) {
    if (err.find(package) != std::string::npos) return package;
  }
  return "";
}

TEST(Messages, AreThoseThatTroubleshootingExplains) {
  const std::vector<ExplainedMessage> messages = explained_messages();
  ASSERT_GT(messages.size(), 50u);
  std::map<std::string, std::string> provoked;  // by message: the line
  std::string missing;                          // a package that this build does without
  for (const Provocation& provocation : provocations()) {
    const Stage stage;
    const Outcome outcome = provocation.provoke(stage);
    if (const std::string package = lacking(outcome.err); !package.empty()) {
      missing = package;
      continue;
    }
    EXPECT_TRUE(fails_with(provocation.code, outcome, {}));
    const std::string prefix = "ringlet: error: ";
    if (outcome.err.size() <= prefix.size()) continue;
    const std::string line =
        outcome.err.substr(prefix.size(), outcome.err.find('\n') - prefix.size());
    std::vector<std::string> fitting;
    for (const auto& [section, message] : messages) {
      if (std::regex_match(line, pattern_of(message))) fitting.push_back(message);
    }
    ASSERT_LE(fitting.size(), 2u);
    if (fitting.empty()) ADD_FAILURE() << "docs/troubleshooting.md does not explain: " << line;
    if (fitting.size() == 2)
      ADD_FAILURE() << line << "\nfits " << fitting[0] << "\nand  " << fitting[1];
    if (!fitting.empty() && !provoked.emplace(fitting[0], line).second) {
      ADD_FAILURE() << "provoked twice: " << line;
    }
  }
  if (!missing.empty()) GTEST_SKIP() << "this build is without " << missing << "; the rest held";
  for (const auto& [section, message] : messages) {
    if (is_provoked(section)) {
      EXPECT_EQ(provoked.count(message), 1u) << "nothing provokes: " << message;
    }
  }
}

}  // namespace
}  // namespace ringlet::testing
