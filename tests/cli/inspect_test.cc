// ringlet inspect, as its users see it.
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"

namespace ringlet::testing {
namespace {

TEST(InspectCommand, ShowsAllThatARunLeaves) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", trace = folder / "t.json", lines = folder / "m.jsonl";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--trace", trace, "--metrics", lines}))));
  const Outcome shown = ringlet({"inspect", out, trace, lines, out + "/model.safetensors"});
  ASSERT_TRUE(succeeds(shown));
  EXPECT_TRUE(holds(shown.out, {": run\n", "can be resumed", "yes", "state/state.json",
                                ": Chrome trace\n", "in collectives", ": metrics\n",
                                "best accuracy", ": safetensors\n", "fc1.weight"}));
  const Outcome json = ringlet({"inspect", "--json", out, trace});
  ASSERT_TRUE(succeeds(json));
  const auto documents = parse_json(json.out);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0]["steps_done"], 4);
  EXPECT_EQ(documents[0]["can_be_resumed"], true);
  EXPECT_EQ(documents[1]["format"], "Chrome trace");
}

TEST(InspectCommand, ShowsTheOthersWhereOneIsDamaged) {
  const TemporaryDirectory folder;
  write_file(folder / "whole", idx({2, 3, 4}));
  write_file(folder / "cut", idx({2, 3, 4}).substr(0, 20));
  const Outcome outcome = ringlet({"inspect", folder / "cut", folder / "whole"});
  EXPECT_TRUE(fails_with(1, outcome, {"cut: truncated: expected 40 bytes, found 20"}));
  EXPECT_TRUE(holds(outcome.out, {"2 images of 3 x 4"}));
}

TEST(InspectCommand, KnowsFashionMnist) {
  const std::string file = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const Outcome outcome = ringlet({"inspect", file, "--show", "1"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"60000 images of 28 x 28", "0.286041", "0.353024", "%%%%"}));
}

/// A folder with all that may be wrong with it.
class InspectPhotographs : public ::testing::Test {
 protected:
  InspectPhotographs() {
    write_picture_folder(root());
    int width = 41;  // pictures to test on that are like no other
    for (const char* name : {"blue", "green", "red"}) {
      for (const char* number : {"0", "1"}) {
        write_file(root() + "/test/" + name + "/" + number + ".png",
                   as_png(gradient_image(width += 7, 31, 3)));
      }
    }
    const auto twin = [&](const std::string& from, const std::string& to) {
      std::filesystem::copy(root() + "/" + from, root() + "/" + to);
    };
    twin("train/red/1.png", "train/red/twin.png");
    twin("train/red/2.png", "test/red/leak.png");
    twin("train/red/3.png", "train/blue/wrong.png");
    write_file(root() + "/train/green/broken.jpg", "no picture");
    write_file(root() + "/train/green/phone.HEIC", "x");
    write_file(root() + "/train/green/notes.txt", "x");
  }
  std::string root() const { return folder_ / "photos"; }

  TemporaryDirectory folder_;
};

TEST_F(InspectPhotographs, TellsWhatARunWouldMeet) {
  const Outcome shown = ringlet({"inspect", root()});
  ASSERT_TRUE(succeeds(shown));
  EXPECT_TRUE(
      holds(shown.out,
            {": pictures\n", "train and test", "resnet20", "\n  red  ", "PNG", "green/broken.jpg",
             "is no image that can be read", ".heic", "heif-convert", "in train and test",
             "in several classes", "warning: 1 of 25 pictures cannot be read",
             "warning: 2 pictures are alike though some are trained on and some are tested on",
             "warning: 2 pictures are alike though they lie in different classes"}));
  const auto json = parse_json(ringlet({"inspect", "--json", root()}).out).at(0);
  EXPECT_EQ(json["format"], "pictures");
  EXPECT_EQ(json["classes"].size(), 3u);
  EXPECT_EQ(json["to_train_on"], 17) << "the broken one is none";
  EXPECT_EQ(json["to_test_on"], 7);
  EXPECT_EQ(json["broken_pictures"], 1);
  EXPECT_EQ(json["equal_pictures"], 6);
  EXPECT_EQ(json["smallest_shorter_side"], 20);
  EXPECT_EQ(json["median_shorter_side"], 25);
  EXPECT_EQ(json["image_size_that_would_be_chosen"], 25);
  EXPECT_EQ(json["alike"].size(), 3u);
  EXPECT_EQ(json["alike"][0]["picture"], "test/red/leak.png");
  EXPECT_EQ(json["alike"][0]["is_like"], "train/red/2.png");
  EXPECT_EQ(json["passed_over"][0]["ending"], ".heic");
  EXPECT_EQ(json["classes"][1]["class"], "green");
  EXPECT_EQ(json["classes"][1]["broken"], 1);
  EXPECT_EQ(json["not_read"].size(), 2u);
  EXPECT_EQ(json["not_read"][0]["file"], "train/green/phone.HEIC");
  EXPECT_EQ(json["not_read"][1]["file"], "train/green/notes.txt");
  // What a run chooses is what is told.
  const std::string recipe = json["recipe_that_would_be_chosen"];
  const Outcome run =
      ringlet({"train", "--data", root(), "--skip-broken", "--max-steps", "0", "--no-out"});
  EXPECT_TRUE(holds(run.out, {"chosen    " + recipe + ": for 18 pictures"}));
}

/// Two that are equal, and one that is nearly so.
TEST_F(InspectPhotographs, CountsEqualPicturesBesideNearlyEqualOnes) {
  auto image = gradient_image(31, 47, 3);
  const std::string at = root() + "/train/red/";
  for (const char* name : {"x.png", "y.png"}) write_file(at + name, as_png(image));
  image.pixels[0] ^= 1;
  write_file(at + "z.png", as_png(image));
  const auto json = parse_json(ringlet({"inspect", "--json", root()}).out).at(0);
  EXPECT_EQ(json["equal_pictures"], 8);
  EXPECT_EQ(json["nearly_equal_pictures"], 1);
}

TEST_F(InspectPhotographs, TellsHowAFolderWouldBeSplit) {
  const Outcome shown = ringlet({"inspect", root() + "/train"});
  ASSERT_TRUE(succeeds(shown));
  EXPECT_TRUE(holds(shown.out, {"a folder for each class", "--split 0.2"}));
  EXPECT_EQ(shown.out.find("in train and test"), std::string::npos) << "a split parts no twins";
  std::filesystem::create_directory(root() + "/train/single");
  write_file(root() + "/train/single/a.png", as_png(gradient_image(31, 47, 3)));
  EXPECT_TRUE(holds(ringlet({"inspect", root() + "/train"}).out,
                    {"warning: ", "the class single has one picture"}));
  const Outcome deeper = ringlet({"inspect", folder_.path().string()});
  EXPECT_TRUE(fails_with(1, deeper, {"name the folder in it that holds train", "photos"}));
}

TEST_F(InspectPhotographs, AreShownOnAPage) {
  const std::string page = folder_ / "page.html";
  ASSERT_TRUE(succeeds(ringlet({"inspect", root(), "--out", page})));
  EXPECT_TRUE(
      holds(read_file(page), {"photos: pictures</h1>", "alike, in train and test",
                              "data:image/png;base64,", "class=\"warning\"", "heif-convert"}));
  EXPECT_TRUE(fails_with(2, ringlet({"inspect", root(), "--out", page}), {"--force"}));
  EXPECT_TRUE(succeeds(ringlet({"inspect", root(), "--json", "--out", page, "--force"})));
}

}  // namespace
}  // namespace ringlet::testing
