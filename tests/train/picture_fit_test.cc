// What size and model a folder of pictures gets where nobody names them.
#include "train/recipe/picture_fit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>

#include "data/picture_sides.h"
#include "tests/support/picture_folder.h"
#include "train/recipe/options.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::train {
namespace {

std::string fit(int median, std::int64_t pictures) {
  const PictureFit fit = fit_to_pictures(median, pictures);
  return fit.model + " " + std::to_string(fit.image_size);
}

TEST(PictureFit, KeepsSmallPicturesAsTheyAre) {
  EXPECT_EQ(fit(28, 100), "resnet20 28");
  EXPECT_EQ(fit(32, 50'000), "resnet20 32");
  EXPECT_EQ(fit(64, 50'000), "resnet20 64");
  EXPECT_EQ(fit(3, 100), "resnet20 8") << "a model needs some pixels";
  EXPECT_EQ(size_for_weights(32), 32);
}

TEST(PictureFit, MakesLargeOnesAsLargeAsThereAreManyOfThem) {
  EXPECT_EQ(fit(65, 50'000), "resnet18 128");
  EXPECT_EQ(fit(255, 50'000), "resnet18 128");
  EXPECT_EQ(fit(256, 4'999), "resnet18 128");
  EXPECT_EQ(fit(256, 5'000), "resnet18 224");
  EXPECT_EQ(size_for_weights(65), 224);
}

template <typename T>
T usual(std::int64_t pictures, const char* key, const GivenOptions& given = {},
        const std::string& model = "resnet18") {
  const GivenOptions all = usual_for_pictures(model, given, pictures);
  const auto found = all.find(key);
  return found == all.end() ? T{} : std::get<T>(found->second);
}

TEST(PictureRecipe, SeesFewPicturesMoreOften) {
  const auto epochs = [](std::int64_t pictures) { return usual<std::int64_t>(pictures, "epochs"); };
  EXPECT_EQ(epochs(1), 100);
  EXPECT_EQ(epochs(100), 100);
  EXPECT_EQ(epochs(400), 63);
  EXPECT_EQ(epochs(800), 50);
  EXPECT_EQ(epochs(5000), 27);
  EXPECT_EQ(epochs(50'000), 15);
  EXPECT_EQ(epochs(1'281'167), 15);
}

TEST(PictureRecipe, TakesSmallStepsOnSmallSets) {
  EXPECT_EQ(usual<std::int64_t>(9'999, "batch_size"), 32);
  EXPECT_EQ(usual<double>(9'999, "lr"), 0.1);
  EXPECT_EQ(usual_for_pictures("resnet18", {}, 10'000).count("batch_size"), 0U);
  EXPECT_EQ(usual_for_pictures("resnet18", {}, 10'000).count("lr"), 0U);
  for (const std::int64_t pictures : {10, 1'000'000}) {
    EXPECT_EQ(usual<std::string>(pictures, "augment"), "crop-flip");
    EXPECT_EQ(usual<double>(pictures, "label_smoothing"), 0.1);
  }
}

TEST(PictureRecipe, LeavesWhatIsGiven) {
  const GivenOptions given{{"epochs", std::int64_t{3}},
                           {"augment", std::string("none")},
                           {"label_smoothing", 0.0},
                           {"batch_size", std::int64_t{8}}};
  EXPECT_EQ(usual_for_pictures("resnet20", given, 100), GivenOptions());
  // The rate is one of the model's own steps, or of another optimiser.
  for (const char* key : {"lr", "optimizer", "schedule", "batch_size"}) {
    const GivenOptions usual = usual_for_pictures("resnet20", {{key, OptionValue()}}, 100);
    EXPECT_FALSE(usual.contains("lr") || usual.contains("batch_size")) << key;
    EXPECT_TRUE(usual.contains("epochs"));
  }
}

TEST(PictureRecipe, IsForClassifiersOfPhotographs) {
  for (const char* model : {"lenet", "mlp", "iresnet18"}) {
    EXPECT_EQ(usual_for_pictures(model, {}, 100), GivenOptions()) << model;
  }
  const auto with_loss = [](const char* loss) {
    return usual_for_pictures("resnet18", {{"loss", std::string(loss)}}, 100);
  };
  EXPECT_EQ(with_loss("arcface"), GivenOptions());
  EXPECT_NE(with_loss("softmax"), GivenOptions());
  EXPECT_EQ(usual_for_pictures("resnet18", {}, 0), GivenOptions()) << "of other data";
}

TEST(FineTuningRecipe, HasEnoughStepsOnFewPictures) {
  const auto usual = [](std::int64_t pictures, const GivenOptions& given = {}) {
    const GivenOptions all = usual_for_fine_tuning(given, pictures);
    std::string text;
    for (const auto& [key, value] : all) text += key + " " + text_of(value) + " ";
    return text;
  };
  EXPECT_EQ(usual(39), "batch_size 8 epochs 50 ");
  EXPECT_EQ(usual(100), "batch_size 8 epochs 17 ");
  EXPECT_EQ(usual(200), "batch_size 10 ") << "20 steps an epoch";
  EXPECT_EQ(usual(9'999), "batch_size 32 ");
  EXPECT_EQ(usual(10'000), "");
  EXPECT_EQ(usual(0), "") << "of other data";
  EXPECT_EQ(usual(39, {{"batch_size", std::int64_t{39}}}), "epochs 50 ");
  EXPECT_EQ(usual(39, {{"batch_size", std::int64_t{64}}, {"epochs", std::int64_t{3}}}), "");
  EXPECT_EQ(usual(39, {{"lr", 0.1}}), "") << "a step and its rate belong together";
  EXPECT_EQ(usual(39, {{"loss", std::string("arcface")}}), "");
}

// Each is a row of the recipe that takes the value.
TEST(PictureRecipe, IsOneThatARunTakes) {
  Recipe recipe = default_recipe("resnet20");
  recipe_options().set(recipe, usual_for_pictures("resnet20", {}, 800));
  EXPECT_EQ(recipe.epochs, 50);
  EXPECT_EQ(recipe.batch_size, 32);
  EXPECT_EQ(recipe.lr, 0.1);
  EXPECT_EQ(recipe.label_smoothing, 0.1);
}

TEST(PictureFit, GoesByTheHeadersOfThePicturesToTrainOn) {
  const testing::TemporaryDirectory folder;
  testing::write_picture_folder(folder.path());  // shorter sides of 20, 25, 30, 20 and 25 pixels
  const data::PictureSides sides = data::measure_sides(folder.path());
  EXPECT_EQ(sides.pictures, 15);
  EXPECT_EQ(sides.known, 15);
  EXPECT_EQ(sides.smallest, 20);
  EXPECT_EQ(sides.median, 25);
  EXPECT_EQ(sides.largest, 30);
  testing::write_file(folder / "train/red/1.png", "broken");
  testing::write_file(folder / "test/red/1.png", testing::as_png(testing::gradient_image(9, 9, 3)));
  const data::PictureSides others = data::measure_sides(folder.path());
  EXPECT_EQ(others.pictures, 15);
  EXPECT_EQ(others.known, 14);
  EXPECT_EQ(others.smallest, 20);
}

}  // namespace
}  // namespace ringlet::train
