// Data sets, weights and states that bring a message.
#include <algorithm>
#include <cmath>

#include "tests/cli/messages/provocations.h"
#include "tests/support/pickles.h"
#include "tests/support/picture_folder.h"
#include "tests/support/records.h"
#include "train/files/safetensors.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

/// In a state: the epoch that has just ended is still to be tested.
const std::string kUntested =
    R"("untested": {"seconds": 1, "samples": 8, "data_seconds": 0, "forward_seconds": 0,)"
    R"( "backward_seconds": 0, "sync_seconds": 0, "update_seconds": 0})";

std::string safetensors(const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  length[1] = static_cast<char>(header.size() >> 8);
  return length + header + data;
}

std::string tensor(const std::string& fields) {
  return safetensors(R"({"a":{)" + fields + "}}", "1234");
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

/// A run's model with a tensor that it has not.
std::string with_a_tensor_more(const Stage& stage) {
  const train::SafetensorsFile model(stage.run() + "/model.safetensors");
  const float value = 1;
  std::vector<train::TensorToWrite> tensors{{{"optimizer.lr", "F32", {}}, &value}};
  for (const auto& entry : model.entries()) tensors.push_back({entry.spec, entry.bytes.data()});
  train::write_safetensors(stage / "more", tensors, model.metadata());
  return read_file(stage / "more");
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
/// Trains on a folder of two photographs.
Provocation photographs_with(const Arguments& flags, int code = 2) {
  return {code, [=](const Stage& stage) {
            for (const char* part : {"train/a", "val/a"}) {
              fs::create_directories(stage / part);
              stage.file(std::string(part) + "/x.ppm", "P6\n1 1\n255\nabc");
            }
            return ringlet(Arguments{"train", "--data", stage / ".", "--no-out"} + flags);
          }};
}

/// Trains on a `.rec` of these bytes, with an `.idx` where there is one, and a val.rec.
Provocation records(const std::string& bytes, const std::string& index = "",
                    const std::string& val = "") {
  return {1, [=](const Stage& stage) {
            const std::string file = stage.file("train.rec", bytes);
            if (!index.empty()) stage.file("train.idx", index);
            if (!val.empty()) stage.file("val.rec", val);
            return ringlet({"train", "--model", "mlp", "--data", file, "--no-out"});
          }};
}

/// A record of that label, with a picture.
std::string record_of(float label) {
  return record_part(0, record_head(label, 1) + as_png(gradient_image(4, 4, 3)));
}

const std::string kPixel = "P5\n1 1\n255\nx";

std::string pickled_text(const std::string& text) {
  return "X" + little_endian(text.size(), 4) + text;
}

/// Converts a file of these bytes.
Provocation convert(const std::string& name, const std::string& bytes) {
  return {1, [=](const Stage& stage) {
            return ringlet({"convert", stage.file(name, bytes), "--out", stage / "new"});
          }};
}
Provocation pickle(const std::string& program) { return convert("p.bin", "\x80\x03" + program); }

/// Converts a folder with such files; those of no bytes have 2^29.
Provocation identities(const std::string& name, const std::string& bytes) {
  return {1, [=](const Stage& stage) {
            fs::create_directories(fs::path(stage / ("faces/" + name)).parent_path());
            const std::string file = stage.file("faces/" + name, bytes);
            if (bytes.starts_with("P5")) fs::resize_file(file, std::uintmax_t{1} << 29);
            return ringlet({"convert", stage / "faces", "--out", stage / "new.rec"});
          }};
}

/// Converts, or refuses to, into --out.
Provocation convert_into(const Arguments& more, const std::string& there = "") {
  return {2, [=](const Stage& stage) {
            stage.file("p.txt", "a\tb\t1\n");
            if (!there.empty()) fs::create_directories(fs::path(stage / there).parent_path());
            if (!there.empty()) stage.file(there, "mine");
            Arguments line{"convert"};
            for (const std::string& word : more) {
              line.push_back(word.starts_with("/") ? stage / word.substr(1) : word);
            }
            return ringlet(line);
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

}  // namespace

std::vector<Provocation> provocations_by_inputs() {
  const std::string one_pair = pickled_pairs({kPixel, kPixel}, {true});
  const std::string images = idx({20, 4, 5}), labels = idx({20}, 10);
  const std::string scalar = R"("dtype":"F32","shape":[],"data_offsets":)";
  return {
      // Data.
      {2,
       [](const Stage& stage) {
         const std::string folder = stage / "d\xff";
         fs::create_directory(folder);
         return ringlet({"train", "--data", folder});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet(quick_train({"--no-out", "--verify", stage.file("p\xff.bin", "")}));
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
      folder_with({"Train/a/x.png", "train/a/x.png"}),
      folder_with({"val/a/x.png"}),
      folder_with({"a/x.png", "b/x.png"}),
      folder_with({"a/x.png", "a/y.png", "b/x.png", "b/y.png"}),
      photographs_with({"--split", "0.5"}, 1),
      folder_with({"x.png"}),
      folder_with({"a/x.txt", "b/x.txt"}),
      folder_with({"inner/train/a/x.png"}),
      folder_with({"a/x/1.png", "b/y/2.png"}),
      folder_with({"train/a/x.heic", "val/a/x.png"}),
      {1,
       [](const Stage& stage) {
         for (const char* set : {"MNIST/raw", "KMNIST/raw"}) {
           fs::create_directories(stage / set);
           write_small_set(stage / set);
         }
         return ringlet({"train", "--data", stage / "."});
       }},
      folder_with({"train/a/x.png"}),
      folder_with({"train/note.txt", "val/a/x.png"}),
      folder_with({"train/a/x.txt", "val/a/x.png"}),
      folder_with({"train/a/x.png", "val/b/x.png"}),
      folder_with({"train/\xe9/x.png", "val/\xe9/x.png"}),
      {1,
       [](const Stage& stage) {
         write_picture_folder(stage / ".");
         stage.file("train/red/hello.png", "hello");
         return ringlet({"train", "--data", stage / ".", "--no-out"});
       }},
      folder_with({"train/a/x.png", "val/a/x.png", "pixels.train"}),
      records(record_of(1).substr(0, 60)),
      records(record_of(1) + "1234"),
      records(record_part(2, "abcd")),
      records(record_part(1, "abcd")),
      records(record_part(5, "abcd")),
      records(record_part(0, "abcd")),
      records(record_part(0, record_head(1, 1)).replace(8, 1, "\7")),
      records("hello, this is no .rec"),
      {1,
       [](const Stage& stage) {
         const std::string file = stage.file("train.rec", record_of(1));
         return ringlet({"train", "--data", file, "--split", "0.5", "--no-out"});
       }},
      records(record_of(std::nanf(""))),
      records(record_part(0, record_head(0, 1) + "RIFF and so on"), "", record_of(0)),
      records(record_part(0, record_head(1, 1))),
      records(record_of(1), "1 0\n"),
      records(record_of(1), "1\t6\n"),
      records(record_of(1), "1\t0\n1\t0\n"),
      records(record_of(1), "", record_of(2)),
      {2,
       [](const Stage&) {
         return ringlet({"train", "--data", "synthetic-faces:0", "--no-out"});
       }},
      {1,
       [](const Stage&) {
         return ringlet({"train", "--data", "synthetic-faces:2147483647", "--no-out"});
       }},
      {2,
       [](const Stage&) {
         return ringlet({"train", "--data", "random:3x0x3", "--no-out"});
       }},
      {1,
       [](const Stage&) {
         return ringlet({"train", "--data", "random:65536x65536x65536", "--no-out"});
       }},
      {2,  // before the message about their names, which it would end in else
       [](const Stage&) {
         return ringlet({"train", "--data", "synthetic-faces:1000000000", "--loss", "arcface",
                         "--model", "mlp", "--no-out"});
       }},
      pickle("cos\nsystem\n(X" + little_endian(4, 4) + "truetR."),
      pickle("}."),
      pickle(std::string(1'000'000, ']')),
      pickle(std::string().append(9'000'000, 'K')),
      pickle("B\xff\xff\xff\xff"),
      pickle("a."),
      convert("p.bin", "(lp0\n."),
      convert("p.bin", "\x80\x06."),
      convert("p.bin", one_pair + "x"),
      pickle("cnumpy\ndtype\n(" + pickled_text("f8") + "tR."),
      pickle("cnumpy.core.numeric\n_frombuffer\n(" + pickled_bytes("ab") + "cnumpy\ndtype\n(" +
             pickled_text("u1") + "tRK\x01K\x02\x86tR."),
      pickle("]])\x87."),
      pickle("N]\x86."),
      pickle("]N\x86."),
      pickle("]](K\x01"
             "e\x86."),
      convert("p.bin", pickled_pairs({kPixel}, {true})),
      convert("p.bin", pickled_pairs({kPixel, "GIF"}, {true})),
      convert("p.txt", ""),
      convert("p.txt", "a b 1\n"),
      convert("p.txt", "1\nAbel 0 1\nAbel 1 Ben 2\n"),
      convert("p.txt", "10\t300\nAbel 1 2\n"),
      convert("p.txt", "a.jpg\tb.jpg\t1\n"),
      convert("p.rec", record_part(0, record_head(1, 1) + "RIFF and so on")),
      identities("a/x.png", "GIF"),
      identities("train/x.png", "GIF"),
      identities("x.png", "GIF"),
      identities("a/x.pgm", kPixel),
      convert_into({"/.", "--out", "/new"}),
      convert_into({"/p.txt", "--out", "/new.rec"}),
      convert_into({"/p.txt", "--out", "/new", "--force"}, "new/mine.txt"),
      convert_into({"/p.txt", "--out", "/new", "--force"}, "new"),
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
         return quick({"--init", stage.run(), "--model", "lenet"});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--init", stage.run() + "/state/optimizer.safetensors"});
       }},
      weights("\x80\x02pickled"),
      {1, [](const Stage& stage) { return stage.init_from(with_a_tensor_more(stage)); }},
      weights(safetensors(R"({"__metadata__":{"ringlet.task":"prices"}})")),
      weights(std::string(16, '\xff')),
      weights(std::string(8, '\xff') + "{}"),
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
      usage({"verify", "--checkpoint", "a", "b", "./b"}),
      {2,
       [](const Stage& stage) {
         const std::string copy = stage / "copy";
         std::filesystem::copy(stage.run() + "/state", copy);
         return ringlet({"train", "--resume", copy});
       }},
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
      state("\n  \"step\": 4", "\n  \"step\": -4"),
      state("\"epoch_samples\": 0", "\"epoch_samples\": -1"),
      state("\n  \"step\": 4", "\n  \"step\": 999999999"),
      {2,
       [](const Stage& stage) {
         return stage.resume_with("\"data\": \"synthetic\"", "\"data\": \"/gone\"");
       }},
      state("\n  \"step\": 4", "\n  \"step\": 0, " + kUntested),
      {1,
       [](const Stage& stage) {
         return stage.resume_with("\"recipe\"", kUntested + ", \"recipe\"", {"--max-steps", "3"});
       }},
      state(
          "\"recipe\"",
          R"("loss_scale": {"scale": 3, "good_steps": 0, "skips": 0, "skips_in_row": 0}, "recipe")"),
      state(
          "\"recipe\"",
          R"("loss_scale": {"scale": 2, "good_steps": 0, "skips": -1, "skips_in_row": 0}, "recipe")"),
      {2,
       [](const Stage& stage) {
         (void)stage.run({"--epochs", "2"});
         return ringlet({"train", "--resume", stage / "out", "--epochs", "1"});
       }},
      state("\"recipe\"", R"("best": [{"set": "a", "accuracy": 2, "step": 1}], "recipe")"),
      state("\"by\": \"accuracy\"", R"("by": "luck")"),
      {1,
       [one_pair](const Stage& stage) {
         const std::string pairs = stage.file("p.bin", one_pair);
         (void)stage.run({"--verify", pairs});
         fs::remove(pairs);
         return stage.resume();
       }},
      state("\"lr\"", "\"rate\""),
      state("\"lr\"", "\"more\": 1, \"lr\""),
      {1,
       [](const Stage& stage) {
         const std::string json = stage.run() + "/state/state.json";
         std::string text = read_file(json);
         write_file(json, text.replace(text.find("\n  \"step\": 4"), 12, "\n  \"step\": 3"));
         return stage.resume();
       }},
      {1,
       [](const Stage& stage) {
         const std::string file = stage.run({"--save-every", "2"}) + "/state/optimizer.safetensors";
         std::string bytes = read_file(file);
         bytes.back() ^= 1;
         write_file(file, bytes);
         return stage.resume();
       }},
      {1,
       [](const Stage& stage) {
         const std::string folder = stage / "images";
         const std::string out = trained_on_a_folder(stage, folder);
         write_file(folder + "/" + kTrainImages, idx({20, 4, 5}, 200));
         return ringlet({"train", "--resume", out});
       }},
  };
}

}  // namespace ringlet::testing
