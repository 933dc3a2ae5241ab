// `ringlet predict`: what a user sees, and what a program reads.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "data/synthetic.h"
#include "tests/cli/program.h"
#include "tests/support/exif.h"
#include "tests/support/files.h"
#include "tests/support/pictures.h"
#include "tests/support/testdata.h"
#include "train/files/safetensors.h"

namespace ringlet::testing {
namespace {

using nlohmann::json;

const Arguments kSizes{"--synthetic-train", "2000", "--synthetic-test", "100"};

/// A run that knows drawn garments well, made once.
class Predict : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    ASSERT_TRUE(succeeds(ringlet(Arguments{"train", "--data", "synthetic", "--model", "mlp",
                                           "--epochs", "4", "--out", path("run")} +
                                 kSizes)));
    data_ = data::make_synthetic({2000, 100, 1}).test;
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  /// Test sample `index`, light on dark as the data set has it.
  static data::Image garment(std::int64_t index) { return {28, 28, 1, data_->image(index)}; }
  static std::string write(const std::string& name, const std::string& bytes) {
    write_file(path(name), bytes);
    return path(name);
  }
  static Outcome predict(const Arguments& more) {
    return ringlet(Arguments{"predict", "--checkpoint", path("run")} + more);
  }
  static json predict_json(const Arguments& more) {
    const Outcome outcome = predict(more + Arguments{"--json"});
    EXPECT_TRUE(succeeds(outcome));
    return parse_json(outcome.out);
  }

  static std::unique_ptr<TemporaryDirectory> folder_;
  static std::shared_ptr<const data::Dataset> data_;
};

std::unique_ptr<TemporaryDirectory> Predict::folder_;
std::shared_ptr<const data::Dataset> Predict::data_;

TEST_F(Predict, OfADataSetIsWhatEvalSays) {
  const std::string out = path("logits.safetensors");
  const Outcome outcome = predict(kSizes + Arguments{"--data", "synthetic", "--out", out});
  ASSERT_TRUE(succeeds(outcome));
  const Outcome evaluated = ringlet(Arguments{"eval", "--checkpoint", path("run")} + kSizes);
  EXPECT_TRUE(holds(outcome.out, {evaluated.out, "saved " + out}));

  const train::SafetensorsFile file(out);
  ASSERT_EQ(file.entries().size(), 2u);
  const auto logits = file.f32("logits");
  const auto labels = file.i64("labels");
  ASSERT_EQ(labels.size(), 100u);
  ASSERT_EQ(logits.size(), 1000u);
  int right = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(labels[i], data_->targets()[i]);
    const auto row = logits.subspan(10 * i, 10);
    right += std::max_element(row.begin(), row.end()) - row.begin() == labels[i] ? 1 : 0;
  }
  EXPECT_GT(right, 70);
  EXPECT_TRUE(holds(outcome.out, {"   " + std::to_string(right) + "    100 "}));
}

TEST_F(Predict, OfTheTrainingHalfToo) {
  const Outcome outcome = predict(kSizes + Arguments{"--data", "synthetic", "--split", "train"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"synthetic/train: 2000 images"}));
}

TEST_F(Predict, OfAnImageAgreesWithItsLogits) {
  const std::string out = path("logits-of-images.safetensors");
  ASSERT_TRUE(succeeds(predict(kSizes + Arguments{"--data", "synthetic", "--out", out})));
  const train::SafetensorsFile file(out);
  const auto row = file.f32("logits").subspan(70, 10);
  double sum = 0;
  for (const float logit : row) sum += std::exp(static_cast<double>(logit));
  const json answer = predict_json({write("seven.png", as_png(garment(7))), "--top", "10"});
  const json& classes = answer.at("images").at(0).at("classes");
  ASSERT_EQ(classes.size(), 10u);
  for (const json& guess : classes) {
    const double expected = std::exp(row[guess.at("index").get<std::size_t>()]) / sum;
    EXPECT_NEAR(guess.at("probability").get<double>(), expected, 1e-5);
  }
}

TEST_F(Predict, ShowsTheClassesAndSaysWhatItDid) {
  data::Image large = gradient_image(56, 28, 3);
  std::fill(large.pixels.begin(), large.pixels.end(), 240);
  const Outcome outcome = predict(
      {write("plain.png", as_png(garment(3))), write("light.jpg", as_jpeg(large)), "--top", "2"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(
      outcome.out, {"mlp, trained on synthetic", "plain.png (28 x 28)\n  taken as it is\n    ",
                    "light.jpg (56 x 28)\n  made grey, inverted (it is dark on light, the training "
                    "images light on dark), scaled to 28 x 14, padded to 28 x 28\n    "}));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '%'), 4);
}

TEST_F(Predict, OfADarkDrawingIsThatOfTheLightOne) {
  data::Image inverted = garment(11);
  for (std::uint8_t& pixel : inverted.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
  const std::string light = write("a.pgm", as_pnm(garment(11)));
  const std::string dark = write("b.pgm", as_pnm(inverted));
  const json images = predict_json({light, dark}).at("images");
  EXPECT_EQ(images[0].at("classes"), images[1].at("classes"));
  EXPECT_EQ(images[0].at("inverted"), false);
  EXPECT_EQ(images[1].at("inverted"), true);
  const json told = predict_json({dark, "--invert", "off"}).at("images")[0];
  EXPECT_EQ(told.at("inverted"), false);
  EXPECT_NE(told.at("classes"), images[1].at("classes"));
  EXPECT_EQ(predict_json({light, "--invert", "on"}).at("images")[0].at("steps"),
            json::array({"inverted as told"}));
}

TEST_F(Predict, StretchesLevelsUnlessItIsToldNotTo) {
  data::Image grey = gradient_image(100, 100, 1);
  std::fill(grey.pixels.begin(), grey.pixels.end(), 90);
  const std::string file = write("grey.png", as_png(grey));
  EXPECT_TRUE(holds(predict({file}).out, {"scaled to 28 x 28, levels stretched"}));
  EXPECT_TRUE(holds(predict({file, "--levels", "off"}).out, {"scaled to 28 x 28\n"}));
}

TEST_F(Predict, TakesFoldersAndSavesWhatTheModelSaw) {
  std::filesystem::create_directories(*folder_ / "many/deeper");
  for (int i = 0; i < 300; ++i) {
    write("many/" + std::to_string(1000 + i) + ".pgm", as_pnm(garment(i % 100)));
  }
  const std::string single = write("1000.png", as_png(gradient_image(28, 28, 1)));
  const json images = predict_json({path("many"), single}).at("images");
  ASSERT_EQ(images.size(), 301u);
  EXPECT_TRUE(images[7].at("file").get<std::string>().ends_with("many/1007.pgm"));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(images[i].at("classes"), images[i + 100].at("classes"));
  }
  ASSERT_TRUE(succeeds(predict(
      {path("many/1007.pgm"), path("many/1000.pgm"), single, "--save-input", path("seen")})));
  EXPECT_EQ(read_file(path("seen/1007.pgm")),
            "P5\n28 28\n255\n" + as_pnm(garment(7)).substr(as_pnm(garment(7)).size() - 784));
  EXPECT_TRUE(std::filesystem::exists(path("seen/1000-2.pgm")));
  const std::string second = write("1000-2.png", as_png(gradient_image(28, 28, 1)));
  ASSERT_TRUE(
      succeeds(predict({path("many/1000.pgm"), single, second, "--save-input", path("counted")})));
  for (const char* name : {"1000", "1000-2", "1000-2-2"}) {
    EXPECT_TRUE(std::filesystem::exists(path(std::string("counted/") + name + ".pgm"))) << name;
  }
}

TEST_F(Predict, TakesAllThatLiesBelowAFolderAndTellsWhatItPassesOver) {
  const std::string image = as_pnm(garment(0));
  for (const char* name :
       {"lies/beside.pgm", "lies/a/1.pgm", "lies/b/2.pgm", "lies/b/c/d/e/3.pgm", "lies/a/._1.pgm",
        "lies/.trash/4.pgm", "lies/b/5.gif", "lies/6.gif", "lies/a/7.HEIC", "lies/notes.txt"}) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    write(name, image);
  }
  std::filesystem::create_directory_symlink(path("lies"), path("lies/a/back"));
  const Outcome outcome = predict({path("lies"), "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json images = parse_json(outcome.out).at("images");
  ASSERT_EQ(images.size(), 4u);
  for (std::size_t i = 0; const char* name : {"a/1.pgm", "b/2.pgm", "b/c/d/e/3.pgm", "beside.pgm"})
    EXPECT_TRUE(images[i++].at("file").get<std::string>().ends_with(name)) << name;
  EXPECT_TRUE(holds(outcome.err, {"lies: passed over 3 entries that are hidden or no picture: ",
                                  "not read by their endings: 2 .gif, 1 .heic; save them as PNG"}));
}

// The pipe holds less than what is printed of the pictures before the last one. So that one is read
// after somebody has begun to read, and can be taken away before.
TEST_F(Predict, PrintsWhatItKnowsBeforeItReadsOn) {
  const std::string last = write("last.pgm", as_pnm(garment(1)));
  Arguments arguments{"predict", "--checkpoint", path("run"), "--top", "10"};
  arguments.insert(arguments.end(), 3000, write("many.pgm", as_pnm(garment(0))));
  Program program(arguments + Arguments{last});
  ASSERT_TRUE(program.wait_for("many.pgm (28 x 28)"));
  std::filesystem::remove(last);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(holds(outcome.err, {"last.pgm", "1 of 3001 images cannot be read"}));
}

TEST_F(Predict, PrintsOneJsonDocumentHoweverManyPassesThereAre) {
  const std::string good = write("json.pgm", as_pnm(garment(2))), none = path("none.png");
  const auto is_one_document = [&](const Arguments& images) {
    const std::string out = predict(images + Arguments{"--json", "--top", "1"}).out;
    auto document = nlohmann::ordered_json::parse(out);
    EXPECT_EQ(out, document.dump(2) + "\n");
    return document;
  };
  EXPECT_EQ(is_one_document(Arguments(600, good)).at("images").size(), 600u);
  EXPECT_EQ(is_one_document({good}).at("left_out").size(), 0u);
  EXPECT_EQ(is_one_document({none, none}).at("images").size(), 0u);
  EXPECT_EQ(is_one_document({none, good, none}).at("left_out").size(), 2u);
}

TEST_F(Predict, CountsTheImagesOfADataSetOnATerminal) {
  Program program({"predict", "--checkpoint", path("run"), "--data", "synthetic",
                   "--synthetic-train", "10", "--synthetic-test", "5000"},
                  {.terminal = true, .environment = {{"TERM", "xterm"}}});
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 0);
  const auto line = outcome.out.find("\r\x1b[2K250 of 5,000 images\r\x1b[2K");
  EXPECT_NE(line, std::string::npos) << outcome.out;
  EXPECT_LT(line, outcome.out.find("(mlp) on"));
}

TEST_F(Predict, LeavesOutWhatCannotBeReadAndEndsWithAnError) {
  const Arguments files{write("cut.png", as_png(garment(0)).substr(0, 90)),
                        write("good.png", as_png(garment(1))), write("none.png", "hello")};
  const Outcome outcome = predict(files);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(holds(outcome.out, {"good.png (28 x 28)"}));
  EXPECT_TRUE(holds(outcome.err, {"ringlet: warning: " + files[0] + ": the PNG file is cut off",
                                  "ringlet: warning: " + files[2] + ": is no image",
                                  "ringlet: error: 2 of 3 images cannot be read"}));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3);
  const json answer = parse_json(predict(files + Arguments{"--json"}).out);
  EXPECT_EQ(answer.at("images"), predict_json({files[1]}).at("images"));
  ASSERT_EQ(answer.at("left_out").size(), 2u);
  EXPECT_EQ(answer.at("left_out")[1].at("file"), files[2]);
  EXPECT_EQ(parse_json(predict({files[0], files[2], "--json"}).out).at("images").size(), 0u);
}

TEST_F(Predict, TurnsAPictureOfATiltedCameraUpright) {
  const std::string jpeg = as_jpeg(gradient_image(40, 28, 3));
  const Outcome outcome = predict({write("tilted.jpg", with_orientation(jpeg, 6, true))});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"tilted.jpg (28 x 40)\n  turned upright, as its Exif data say, "}));
}

TEST_F(Predict, NamesWhatIsWrongWithAnImage) {
  EXPECT_TRUE(fails_with(1, predict({"/no/such.png"}), {"/no/such.png", "no such file"}));
  EXPECT_TRUE(fails_with(1, predict({write("cut.png", as_png(garment(0)).substr(0, 90))}),
                         {"cut.png", "cut off"}));
  EXPECT_TRUE(fails_with(1, predict({write("a.gif", "GIF89a")}), {"a.gif", "PNG"}));
  std::filesystem::create_directories(*folder_ / "empty");
  EXPECT_TRUE(fails_with(1, predict({path("empty")}), {"empty", "no image"}));
}

TEST_F(Predict, NeedsImagesOrDataAndNotBoth) {
  const std::string image = write("x.png", as_png(garment(0)));
  EXPECT_TRUE(fails_with(2, predict({}), {"needs images", "--data"}));
  EXPECT_TRUE(fails_with(2, predict({image, "--data", "synthetic"}), {"--data", "combined"}));
  EXPECT_TRUE(fails_with(2, predict({image, "--out", "f"}), {"--out", "combined"}));
  EXPECT_TRUE(fails_with(2, predict({"--data", "synthetic", "--json"}), {"--json", "combined"}));
  EXPECT_TRUE(succeeds(ringlet({"predict", "--checkpoint", path("run"), image},
                               {.environment = {{"RINGLET_DATASET", "synthetic"}}})))
      << "images on the command line count more than a data set elsewhere";
  EXPECT_TRUE(fails_with(2, predict({image, "--model", "lenet"}), {"--model lenet", "mlp"}));
  EXPECT_TRUE(fails_with(2, predict({image, "--invert", "maybe"}), {"--invert", "auto, on, off"}));
}

TEST_F(Predict, OfAFileThatIsPyTorchsSaysWhatIsAssumed) {
  const std::string file = testdata("oracle/init.safetensors");
  const std::string image = write("y.png", as_png(garment(0)));
  const Outcome outcome = ringlet({"predict", "--checkpoint", file, image, "--top", "10"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"does not say what it holds", "taken for lenet", "1 x 28 x 28",
                                  "Fashion-MNIST's", "\n    9  ", "\n    0  "}));
  const Outcome plain = ringlet({"predict", "--checkpoint", file, image, "--no-normalize"});
  EXPECT_TRUE(holds(plain.out, {"pixels / 255\n"}));
  const Outcome wrong = ringlet({"predict", "--checkpoint", file, "--model", "mlp", image});
  EXPECT_TRUE(fails_with(1, wrong, {"init.safetensors", "fc3.weight"}));
  const json answer = parse_json(ringlet({"predict", "--checkpoint", file, "--json", image}).out);
  EXPECT_EQ(answer.at("assumed"), true);
  EXPECT_EQ(answer.at("model"), "lenet");
}

TEST_F(Predict, OfBrokenWeightsIsRefused) {
  const train::SafetensorsFile whole(path("run/model.safetensors"));
  std::vector<train::TensorToWrite> tensors;
  for (const auto& entry : whole.entries()) tensors.push_back({entry.spec, entry.bytes.data()});
  const std::vector<float> broken(10, NAN);
  for (auto& tensor : tensors) {
    if (tensor.spec.name == "fc3.bias") tensor.data = broken.data();
  }
  train::write_safetensors(path("nan.safetensors"), tensors, whole.metadata());
  const std::string image = write("z.png", as_png(garment(0)));
  EXPECT_TRUE(fails_with(1, ringlet({"predict", "--checkpoint", path("nan.safetensors"), image}),
                         {"nan.safetensors", "not finite"}));
}

}  // namespace
}  // namespace ringlet::testing
