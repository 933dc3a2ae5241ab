// --init with files that do not hold the model: one line with every problem, exit code 1; and with
// files that do, as PyTorch writes them.
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "tests/support/torch_files.h"

namespace ringlet::testing {
namespace {

using nlohmann::json;

std::string little_endian(std::uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// A safetensors file taken apart.
struct Parts {
  json header;
  std::string data;

  static Parts of(const std::string& bytes) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    return {parse_json(bytes.substr(8, size)), bytes.substr(8 + size)};
  }
  std::string bytes() const {
    std::string text = header.dump();
    while (text.size() % 8 != 0) text += ' ';
    return little_endian(text.size()) + text + data;
  }
};

/// The mlp's weights as a run of no steps leaves them.
const std::string& good_file() {
  static const std::string bytes = [] {
    const TemporaryDirectory out;
    const Outcome run = ringlet(quick_train({"--max-steps", "0", "--out", out.path().string()}));
    EXPECT_TRUE(succeeds(run));
    return read_file(out / "model.safetensors");
  }();
  return bytes;
}

Outcome start_from(const std::string& bytes) {
  const TemporaryDirectory folder;
  write_file(folder / "weights.safetensors", bytes);
  return ringlet(quick_train({"--init", (folder / "weights.safetensors").string()}));
}

/// The good file with its parts changed.
std::string changed(const std::function<void(Parts&)>& change) {
  Parts parts = Parts::of(good_file());
  change(parts);
  return parts.bytes();
}

TEST(Weights, OfARunLoad) { EXPECT_TRUE(succeeds(start_from(good_file()))); }

// One flipped bit gives other numbers, and all of them finite.
TEST(Weights, OfADamagedStateAreRefusedWhoeverReadsThem) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", file = folder / "run/state/model.safetensors";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  std::string bytes = read_file(file);
  bytes[bytes.size() - 4] ^= 1;
  write_file(file, bytes);
  const std::initializer_list<std::string> words{file, "is not the file that was saved",
                                                 "it is damaged"};
  for (const Arguments& command : {Arguments{"eval", "--checkpoint", file},
                                   {"predict", "--checkpoint", file, "--data", "synthetic"},
                                   {"export", "--checkpoint", file, "--onnx", folder / "m.onnx"},
                                   quick_train({"--init", file})}) {
    EXPECT_TRUE(fails_with(1, ringlet(command), words)) << command.front();
  }
  const Outcome shown = ringlet({"inspect", file});  // to look at what is damaged is its purpose
  EXPECT_TRUE(succeeds(shown));
  EXPECT_TRUE(holds(shown.out, {"is not the file that was saved"}));
}

TEST(Weights, CutOffAreRefused) {
  const std::string& good = good_file();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{100}, good.size() - 1}) {
    EXPECT_TRUE(fails_with(1, start_from(good.substr(0, size)), {"weights.safetensors"})) << size;
  }
}

TEST(Weights, WithSurplusBytesAreRefused) {
  EXPECT_TRUE(fails_with(1, start_from(good_file() + "1234"), {"weights.safetensors"}));
}

TEST(Weights, WithAnEndlessHeaderAreRefused) {
  const std::string& good = good_file();
  EXPECT_TRUE(fails_with(1, start_from(little_endian(1ULL << 63) + good.substr(8)),
                         {"weights.safetensors", "header"}));
}

TEST(Weights, WithAHoleAreRefused) {
  const std::string file = changed([](Parts& parts) {
    parts.header["fc3.weight"]["data_offsets"][1] =
        parts.header["fc3.weight"]["data_offsets"][1].get<int>() - 4;
  });
  EXPECT_TRUE(fails_with(1, start_from(file), {"weights.safetensors", "fc3.weight"}));
}

TEST(Weights, ThatOverlapAreRefused) {
  const std::string file = changed([](Parts& parts) {
    parts.header["fc2.bias"]["data_offsets"] = parts.header["fc3.bias"]["data_offsets"];
  });
  EXPECT_TRUE(fails_with(1, start_from(file), {"weights.safetensors"}));
}

TEST(Weights, WithANameTwiceAreRefused) {
  const Parts parts = Parts::of(good_file());
  std::string text = parts.header.dump();
  text = "{\"fc1.bias\":" + parts.header["fc1.bias"].dump() + "," + text.substr(1);
  while (text.size() % 8 != 0) text += ' ';
  EXPECT_TRUE(fails_with(1, start_from(little_endian(text.size()) + text + parts.data),
                         {"weights.safetensors", "fc1.bias"}));
}

TEST(Weights, ListAllThatDoesNotFitAtOnce) {
  const std::string file = changed([](Parts& parts) {
    json& header = parts.header;
    header["nosuch"] = header["fc1.bias"];
    header.erase("fc1.bias");
    header["fc2.weight"]["shape"] = {256, 128};
    header["fc3.weight"]["dtype"] = "U32";  // signed ones are taken for floats
  });
  EXPECT_TRUE(fails_with(1, start_from(file),
                         {"fc1.bias", "nosuch", "fc2.weight", "fc3.weight", "U32", "F32"}));
}

TEST(Weights, OfAnotherModelAreRefused) {
  const TemporaryDirectory folder;  // not Ringlet's, so that nothing but the tensors tells
  write_file(folder / "w", changed([](Parts& parts) { parts.header.erase("__metadata__"); }));
  EXPECT_TRUE(
      fails_with(1,
                 ringlet({"eval", "--model", "lenet", "--data", "synthetic", "--synthetic-train",
                          "64", "--synthetic-test", "64", "--init", (folder / "w").string()}),
                 {"conv1.weight", "fc3.bias"}));
}

TEST(Weights, ThatAreNotThereAreNamed) {
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--init", "/no/such"})), {"/no/such"}));
}

TEST(Weights, OfAWrappedModuleLoad) {
  const std::string file = changed([](Parts& parts) {
    json wrapped = json::object();
    for (const auto& [name, entry] : parts.header.items()) {
      wrapped[name == "__metadata__" ? name : "module." + name] = entry;
    }
    parts.header = wrapped;
  });
  ASSERT_NE(file.find("module.fc1.weight"), std::string::npos);
  EXPECT_TRUE(succeeds(start_from(file)));
}

TEST(Weights, OfARunsFolderLoad) {
  const TemporaryDirectory folder;
  const std::string run = folder / "run", again = folder / "again";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  const auto start = [&](const std::string& init) {
    return ringlet(quick_train({"--init", init, "--out", again, "--force"}));
  };
  ASSERT_TRUE(succeeds(start(run + "/model.safetensors")));
  const std::string expected = read_file(again + "/model.safetensors");
  ASSERT_TRUE(succeeds(start(run)));
  EXPECT_TRUE(read_file(again + "/model.safetensors") == expected);
  std::filesystem::remove(run + "/model.safetensors");  // as a run that was stopped leaves it
  ASSERT_TRUE(succeeds(start(run)));
  EXPECT_TRUE(read_file(again + "/model.safetensors") == expected);
  EXPECT_TRUE(fails_with(1, start(folder / "."), {"model.safetensors", "no such file"}));
}

/// The good file with the first number of a tensor NaN.
std::string with_a_nan(const std::string& tensor) {
  return changed([&](Parts& parts) {
    const auto at = parts.header[tensor]["data_offsets"][0].get<std::size_t>();
    parts.data.replace(at, 4, std::string("\0\0\xc0\xff", 4));  // printed as "-nan"
  });
}

TEST(Weights, ThatAreNotFiniteAreRefusedUnlessSomebodyOnlyLooks) {
  const TemporaryDirectory folder;
  const std::string file = folder / "w.safetensors", onnx = folder / "w.onnx",
                    picture = folder / "p.pgm";
  write_file(picture, "P5\n28 28\n255\n" + std::string(28 * 28, '\x40'));
  write_file(file, with_a_nan("fc2.weight"));
  const std::string named = "w.safetensors: tensor 'fc2.weight' has nan at [0, 0]";
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--init", file})), {named}));
  const std::vector<Arguments> looks{{"eval", "--checkpoint", file},
                                     {"predict", "--checkpoint", file, "--data", "synthetic"},
                                     {"predict", "--checkpoint", file, picture},
                                     {"export", "--checkpoint", file, "--onnx", onnx}};
  for (const Arguments& look : looks) {
    EXPECT_TRUE(fails_with(1, ringlet(look), {named})) << look[0];
    EXPECT_FALSE(std::filesystem::exists(onnx));
    const Outcome shown = ringlet(look + Arguments{"--allow-nonfinite"});
    EXPECT_TRUE(succeeds(shown)) << look[0];
    EXPECT_EQ(shown.out.find("-nan"), std::string::npos) << shown.out;
  }
  EXPECT_TRUE(std::filesystem::exists(onnx));
}

TEST(Weights, OfDoublesAreRoundedAndThatIsSaid) {
  const std::string file = changed([](Parts& parts) {
    Parts wide{json::object(), ""};
    for (const auto& [name, entry] : parts.header.items()) {
      wide.header[name] = entry;
      if (name == "__metadata__") continue;
      const auto begin = entry["data_offsets"][0].get<std::size_t>();
      const std::size_t count = (entry["data_offsets"][1].get<std::size_t>() - begin) / 4;
      wide.header[name]["dtype"] = "F64";
      wide.header[name]["data_offsets"] = {wide.data.size(), wide.data.size() + 8 * count};
      for (std::size_t i = 0; i < count; ++i) {
        float value = 0;
        std::memcpy(&value, parts.data.data() + begin + 4 * i, sizeof value);
        const double twice = value;
        wide.data.append(reinterpret_cast<const char*>(&twice), sizeof twice);
      }
    }
    parts = wide;
  });
  const Outcome narrowed = start_from(file);
  EXPECT_EQ(narrowed.code, 0);
  EXPECT_TRUE(holds(narrowed.err, {"warning: ", "its F64 numbers are rounded to f32"}));
  const auto epochs = [](const std::string& out) { return out.substr(out.find("\nepoch")); };
  const auto loss = [&](const Outcome& outcome) { return epochs(outcome.out).substr(0, 130); };
  EXPECT_EQ(loss(narrowed), loss(start_from(good_file())));
}

TEST(Weights, ThatPyTorchWroteLoad) {
  const std::string file = testdata("oracle/init.safetensors");
  const Outcome outcome = ringlet({"eval", "--data", "synthetic", "--synthetic-train", "64",
                                   "--synthetic-test", "64", "--checkpoint", file});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"64 ", "loss 2."}));
}

/// The lines `key = value` that --print-config prints.
std::string configured_with(const Arguments& more) {
  const Outcome outcome =
      ringlet(Arguments{"train", "--model", "mlp", "--data", "synthetic", "--print-config"} + more);
  EXPECT_TRUE(succeeds(outcome));
  return "\n" + outcome.out;
}

TEST(FineTuning, WarnsWhereWhatIsFrozenWasNeverLearnt) {
  const TemporaryDirectory folder;
  const Arguments frozen{"--freeze", "all-but-head", "--max-steps", "1"};
  const Outcome begun = ringlet(quick_train(frozen + Arguments{"--out", folder / "run"}));
  EXPECT_EQ(begun.code, 0);
  EXPECT_TRUE(holds(begun.err, {"warning: --freeze all-but-head without --init"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", folder / "run", "--max-steps", "2"})));
  EXPECT_TRUE(
      succeeds(ringlet(quick_train(frozen + Arguments{"--init", folder / "run", "--no-out"}))));
}

TEST(FineTuning, SetsDefaultsAndWhatIsGivenWins) {
  const TemporaryDirectory folder;
  const auto weights = [&](std::int64_t classes) {
    const std::string bytes(static_cast<std::size_t>(4 * classes), '\0');
    const std::string rows =
        pickled_tensor({.stored = classes, .shape = {classes, 1}, .strides = {1, 1}});
    std::string file = folder / (std::to_string(classes) + ".pth");
    write_file(file,
               torch_file(pickled_dict({{"fc1.weight", rows}, {"fc3.weight", rows}}), {bytes}));
    return file;
  };
  const std::string usual = configured_with({"--init", weights(10), "--fine-tune"});
  EXPECT_TRUE(holds(
      usual, {"\nlr = 0.01\n", "\nhead-lr = 0.1\n", "\nepochs = 10\n", "\nschedule = \"cosine\"\n",
              "\nwarmup-epochs = 1\n", "\nnormalize = \"data\"\n", "\nreplace-head = true\n"}));
  EXPECT_TRUE(holds(configured_with({"--init", weights(10)}), {"\nreplace-head = false\n"}));
  const std::string of_imagenet = configured_with({"--init", weights(1000), "--fine-tune"});
  EXPECT_TRUE(holds(of_imagenet, {"\nnormalize = \"imagenet\"\n"}));
  const std::string given =
      configured_with({"--init", weights(1000), "--fine-tune", "--lr", "0.5", "--epochs", "2",
                       "--normalize", "cifar-10", "--schedule", "one-cycle"});
  EXPECT_TRUE(holds(given, {"\nlr = 0.5\n", "\nhead-lr = 5\n", "\nepochs = 2\n",
                            "\nnormalize = \"cifar-10\"\n", "\nwarmup-epochs = 0\n"}));
  EXPECT_TRUE(holds(configured_with({"--init", weights(10), "--fine-tune", "--head-lr", "0.3"}),
                    {"\nlr = 0.01\n", "\nhead-lr = 0.3\n"}));
}

}  // namespace
}  // namespace ringlet::testing
