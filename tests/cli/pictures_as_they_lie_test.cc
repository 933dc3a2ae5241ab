// A folder of photographs as it lies: split, fitted with a model and a size, learnt, read again.
#include <filesystem>
#include <random>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Classes blue, green and red of 10 pictures in one folder.
class PicturesOfAUser : public ::testing::Test {
 protected:
  PicturesOfAUser() {
    write_picture_folder(folder_ / "parts", 10, 2);
    fs::rename(folder_ / "parts/train", photos());
  }
  std::string photos() const { return folder_ / "photos"; }
  std::string parts() const { return folder_ / "parts"; }
  std::string out() const { return folder_ / "out"; }
  Arguments train(const Arguments& more, const std::string& data = "") const {
    return Arguments{"train",
                     "--data",
                     data.empty() ? photos() : data,
                     "--epochs",
                     "1",
                     "--batch-size",
                     "8",
                     "--model",
                     "mlp",
                     "--image-size",
                     "12"} +
           more;
  }

  TemporaryDirectory folder_;
};

TEST_F(PicturesOfAUser, AreSplitAlikeByWhateverReadsTheRun) {
  const Outcome trained = ringlet(train({"--out", out(), "--split", "0.3"}));
  EXPECT_EQ(trained.code, 0) << trained.err;
  const std::string note = "9 of 30 pictures are tested on, and not trained on (--split 0.3)";
  EXPECT_TRUE(holds(trained.err, {note}));
  EXPECT_TRUE(holds(trained.out, {"21 images of 3 x 12 x 12, 3 classes"}));
  const std::string all = trained.out.substr(trained.out.find("\nall "));
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out()});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_TRUE(holds(evaluated.err, {note}));
  EXPECT_EQ(evaluated.out.find("other data"), std::string::npos) << evaluated.out;
  EXPECT_NE(all.find(evaluated.out.substr(evaluated.out.find("\nall "))), std::string::npos)
      << trained.out << evaluated.out;
  const Outcome asked = ringlet({"predict", "--checkpoint", out(), "--data", photos()});
  EXPECT_TRUE(holds(asked.out, {"9 images of 3 x 12 x 12"}));
  const std::string page = folder_ / "page.html";
  EXPECT_EQ(ringlet({"report", out(), "--out", page}).code, 0);
  EXPECT_EQ(read_file(page).find("Not known here"), std::string::npos);
  // Another seed tests on the same pictures.
  const std::string other = folder_ / "other";
  ASSERT_EQ(ringlet(train({"--out", other, "--split", "0.3", "--seed", "7"})).code, 0);
  EXPECT_EQ(ringlet({"eval", "--checkpoint", other}).out.find("other data"), std::string::npos);
  const auto hash_of = [](const std::string& run) {
    const std::string facts = read_file(run + "/run.json");
    return facts.substr(facts.find("\"test_contents\""), 120);
  };
  EXPECT_EQ(hash_of(out()), hash_of(other));
}

TEST_F(PicturesOfAUser, KeepTheirSplitWhereARunGoesOn) {
  ASSERT_EQ(ringlet(train({"--out", out()})).code, 0);
  const std::string expected = read_file(out() + "/model.safetensors");
  const std::string again = folder_ / "again";
  ASSERT_EQ(ringlet(train({"--out", again, "--max-steps", "1"})).code, 0);
  EXPECT_NE(read_file(again + "/config.toml").find("\nsplit = 0.2\n"), std::string::npos);
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", again, "--split", "0.5"}),
                         {"--split 0.5", "the run has --split 0.2"}));
  const std::string moved = folder_ / "moved";
  fs::rename(photos(), moved);
  ASSERT_EQ(ringlet({"train", "--resume", again, "--data", moved}).code, 0);
  const std::string model = read_file(again + "/model.safetensors");
  EXPECT_EQ(model.size(), expected.size());
  EXPECT_EQ(model.substr(model.size() - 1000), expected.substr(expected.size() - 1000));
}

TEST_F(PicturesOfAUser, RefuseASplitThatIsNone) {
  for (const char* share : {"0", "1", "-0.1", "nan", "inf", "1e-400", "half", ""}) {
    EXPECT_TRUE(fails_with(2, ringlet(train({"--split", share})), {"--split"})) << share;
  }
}

TEST_F(PicturesOfAUser, ThatOthersWereTrainedOnAreAllTestedOn) {
  write_picture_folder(parts(), 4, 2);
  ASSERT_EQ(ringlet(train({"--out", out()}, parts())).code, 0);
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out(), "--data", photos()});
  EXPECT_EQ(evaluated.code, 0);
  EXPECT_TRUE(holds(evaluated.err, {"the test is on all 30 pictures"}));
  // And the other way round.
  ASSERT_EQ(ringlet(train({"--out", out(), "--force"})).code, 0);
  EXPECT_TRUE(holds(ringlet({"eval", "--checkpoint", out(), "--data", parts()}).out,
                    {"6 images of 3 x 12 x 12"}));
}

TEST_F(PicturesOfAUser, AreKnownByTheRunThatSplitThemAndOthersAreNotSplit) {
  ASSERT_EQ(ringlet(train({"--out", out()})).code, 0);
  const auto scored = [&](const char* command, const std::string& data, const Arguments& more) {
    return ringlet(Arguments{command, "--checkpoint", out(), "--data", data} + more);
  };
  const std::string moved = folder_ / "moved", others = folder_ / "others", one = folder_ / "one";
  fs::copy(photos(), moved, fs::copy_options::recursive);
  write_picture_folder(others, 4, 5);
  fs::create_directory(one);
  fs::copy(others + "/test/red", one + "/red");
  for (const char* command : {"eval", "predict"}) {
    const Outcome own = scored(command, moved, {});
    EXPECT_TRUE(holds(own.out, {"6 images of 3 x 12 x 12"})) << own.err;
    EXPECT_EQ(own.out.find("other data"), std::string::npos) << own.out;
    EXPECT_TRUE(holds(scored(command, others + "/test", {}).err, {"is on all 15 pictures"}));
    const Outcome of_one = scored(command, one, {});
    EXPECT_EQ(of_one.code, 0) << of_one.err;
    EXPECT_TRUE(holds(of_one.out, {"\nred "}));
  }
  EXPECT_TRUE(holds(scored("predict", moved, {"--split", "train"}).out, {"24 images"}));
  EXPECT_TRUE(holds(scored("predict", one, {"--split", "train"}).out, {"5 images"}));
  // A model's file alone knows how many there were.
  const std::string alone = folder_ / "alone.safetensors";
  fs::copy(out() + "/model.safetensors", alone);
  for (const auto& [data, images] : {std::pair(moved, "6 images"), {others + "/test", "15 images"}})
    EXPECT_TRUE(
        holds(ringlet({"eval", "--checkpoint", alone, "--data", data}).out, {std::string(images)}));
}

TEST_F(PicturesOfAUser, GetASizeAndAModel) {
  const Arguments bare{"train", "--data", photos(), "--epochs", "1", "--batch-size", "8"};
  const Outcome trained = ringlet(bare + Arguments{"--out", out()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(holds(trained.out,
                    {"chosen    resnet20 (--model) on 25 x 25 pixels (--image-size): "
                     "their shorter sides have 20 to 30 pixels, 25 in the middle\n",
                     "chosen    --augment crop-flip --label-smoothing 0.1: for about 24 pictures\n",
                     "24 images of 3 x 25 x 25", "model     resnet20"}));
  EXPECT_TRUE(holds(read_file(out() + "/config.toml"),
                    {"\nmodel = \"resnet20\"\n", "\nimage-size = 25\n"}));
  EXPECT_TRUE(holds(ringlet({"eval", "--checkpoint", out()}).out, {"6 images of 3 x 25 x 25"}));
  // What is given stays; the rest follows.
  const Arguments brief{"--max-steps", "1", "--no-out"};
  EXPECT_TRUE(holds(ringlet(bare + brief + Arguments{"--model", "mlp"}).out,
                    {"chosen    mlp on 25 x 25 pixels (--image-size): "}));
  EXPECT_TRUE(holds(ringlet(bare + brief + Arguments{"--image-size", "65"}).out,
                    {"chosen    resnet18 (--model) on 65 x 65 pixels: "}));
  EXPECT_EQ(ringlet(train(brief)).out.find("chosen"), std::string::npos);
  // All processes of a run have the same.
  EXPECT_TRUE(holds(ringlet(bare + brief + Arguments{"--processes", "2"}).out,
                    {"chosen    resnet20 (--model) on 25 x 25 pixels"}));
}

TEST_F(PicturesOfAUser, GetASizeByThoseThatAreTrainedOn) {
  const fs::path many = folder_ / "many";
  for (const int level : {30, 200}) {
    const fs::path of_class = many / std::to_string(level);
    fs::create_directories(of_class);
    const auto grey = static_cast<std::uint8_t>(level);
    write_file(of_class / "0.png", as_png({256, 256, 1, std::vector<std::uint8_t>(65536, grey)}));
    for (int i = 1; i < 2600; ++i) {
      fs::create_hard_link(of_class / "0.png", of_class / (std::to_string(i) + ".png"));
    }
  }
  const Arguments shown{"train", "--data", many, "--print-config"};
  EXPECT_TRUE(holds(ringlet(shown).out, {"\nimage-size = 128\n"}));
  EXPECT_TRUE(holds(ringlet(shown + Arguments{"--split", "0.01"}).out, {"\nimage-size = 224\n"}));
  EXPECT_TRUE(holds(ringlet({"inspect", many}).out, {"image size that would be chosen  128\n"}));
}

TEST_F(PicturesOfAUser, GetARecipeByTheirNumber) {
  const Arguments bare{"train", "--data", photos(), "--max-steps", "1"};
  const Outcome trained = ringlet(bare + Arguments{"--out", out()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(
      holds(trained.out, {"chosen    --epochs 100 --batch-size 32 --lr 0.1 --augment crop-flip "
                          "--label-smoothing 0.1: for about 24 pictures\n"}));
  EXPECT_TRUE(holds(read_file(out() + "/config.toml"),
                    {"\nepochs = 100\n", "\nbatch-size = 32\n", "\naugment = \"crop-flip\"\n",
                     "\nlabel-smoothing = 0.1\n"}));
  // A run that goes on has what it began with.
  EXPECT_EQ(ringlet({"train", "--resume", out(), "--max-steps", "2"}).out.find("chosen"),
            std::string::npos);
  // What is given stays.
  const Arguments brief = bare + Arguments{"--no-out"};
  EXPECT_TRUE(holds(ringlet(brief + Arguments{"--augment", "none", "--lr", "0.2"}).out,
                    {"chosen    --epochs 100 --label-smoothing 0.1: for about 24 pictures\n"}));
  EXPECT_TRUE(holds(ringlet(brief + Arguments{"--processes", "2"}).out,
                    {"chosen    --epochs 100 --batch-size 32"}));
  EXPECT_TRUE(
      holds(ringlet(brief + Arguments{"--split", "0.5"}).out, {": for about 15 pictures\n"}));
  // With weights to begin from, and for the losses of faces, the recipe is another.
  const Outcome begun = ringlet(brief + Arguments{"--init", out()});
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_EQ(begun.out.find("chosen    --epochs"), std::string::npos) << begun.out;
}

TEST_F(PicturesOfAUser, BeginWithAModelOfItsSize) {
  ASSERT_EQ(ringlet(train({"--out", out()})).code, 0);
  const Outcome begun = ringlet({"train", "--data", photos(), "--init", out(), "--batch-size", "8",
                                 "--max-steps", "1", "--no-out"});
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_TRUE(holds(begun.out, {"chosen    mlp (--model) on 12 x 12 pixels (--image-size): as the "
                                "weights in " +
                                out() + " have it\n"}));
}

TEST_F(PicturesOfAUser, BeginWithWeightsOfWhichTheRunSaysWhatItTakes) {
  ASSERT_EQ(ringlet(train({"--out", out()})).code, 0);
  const std::string file = out() + "/model.safetensors";
  const Arguments begin{"--init", out(), "--no-out"};
  const Outcome same = ringlet(train(begin));
  EXPECT_TRUE(holds(same.out, {"init      " + file +
                                   ": all 6 tensors of the model, the last "
                                   "layer, fc3, with its 3 outputs too\n",
                               "--fine-tune takes a tenth"}));
  EXPECT_EQ(ringlet(train(begin + Arguments{"--lr", "0.1"})).out.find("--fine-tune"),
            std::string::npos);
  EXPECT_EQ(same.out.find("its classes are others"), std::string::npos) << same.out;
  fs::rename(photos() + "/red", photos() + "/purple");
  EXPECT_TRUE(holds(ringlet(train(begin)).out,
                    {"init      its classes are others (red where here is purple)"}));
  fs::rename(photos() + "/purple", photos() + "/red");
  // A class more.
  fs::create_directory(photos() + "/yellow");
  std::mt19937 random(1);
  for (const char* name : {"1.ppm", "2.ppm", "3.ppm", "4.ppm"}) {
    std::string pixels(20 * 20 * 3, ' ');
    for (char& value : pixels) value = static_cast<char>(random());
    write_file(photos() + "/yellow/" + name, "P6 20 20 255\n" + pixels);
  }
  const Outcome other = ringlet(train(begin + Arguments{"--fine-tune"}));
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(holds(other.out, {"init      " + file +
                                ": 4 of the model's 6 tensors; the last layer, "
                                "fc3, starts anew, since it has 3 outputs there and 4 here\n"}));
  EXPECT_EQ(other.out.find("takes a tenth"), std::string::npos);
  const Outcome refused = ringlet(train(begin));
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(holds(refused.err, {"--fine-tune or --replace-head"}));
  EXPECT_EQ(refused.out.find("init  "), std::string::npos) << refused.out;
}

TEST_F(PicturesOfAUser, AreFineTunedInSmallSteps) {
  ASSERT_EQ(ringlet(train({"--out", out()})).code, 0);
  const Arguments tune{"train",       "--data",   photos(),      "--init", out(),
                       "--fine-tune", "--no-out", "--max-steps", "1"};
  EXPECT_TRUE(holds(ringlet(tune).out,
                    {"chosen    --epochs 50 --batch-size 8: to fine-tune on about 24 pictures\n"}));
  EXPECT_EQ(ringlet(tune + Arguments{"--epochs", "1", "--lr", "0.01"}).out.find("chosen    --"),
            std::string::npos);
}

TEST_F(PicturesOfAUser, BeginWithNoOtherModel) {
  ASSERT_EQ(ringlet(train({"--out", out()})).code, 0);
  const Outcome refused =
      ringlet({"train", "--data", photos(), "--init", out(), "--no-out", "--model", "resnet20"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(
      holds(refused.err, {"holds weights of mlp, and this run trains resnet20; take --model "
                          "mlp, or weights of resnet20"}));
}

}  // namespace
}  // namespace ringlet::testing
