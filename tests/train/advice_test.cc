// What a run's losses say about what to change.
#include "train/reports/advice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace ringlet::train {
namespace {

Recipe recipe_of(int epochs, data::Augment augment = data::Augment::none) {
  Recipe recipe;
  recipe.epochs = epochs;
  recipe.augment = data::name_of(augment);
  recipe.lr = 0.2;
  return recipe;
}

Learnt learnt(double train_loss, double test_loss, double accuracy = 0.5) {
  return {train_loss, test_loss, accuracy, 10, true, 1000};
}

TEST(Advice, TellsWhoLearnsByHeartWhatVariesMore) {
  EXPECT_EQ(advice_on(learnt(0.16, 1.65), recipe_of(30)),
            "training loss 0.16, test 1.65: it learns by heart; --augment crop-flip, or more "
            "pictures");
  EXPECT_NE(advice_on(learnt(0.16, 1.65), recipe_of(30, data::Augment::crop_flip))
                .find("--augment random-resized-crop, or more pictures"),
            std::string::npos);
  Recipe varied = recipe_of(30, data::Augment::random_resized_crop);
  EXPECT_NE(advice_on(learnt(0.16, 1.65), varied).find("--label-smoothing 0.1"), std::string::npos);
  varied.label_smoothing = 0.1F;
  EXPECT_NE(advice_on(learnt(0.16, 1.65), varied).find("more pictures would help most"),
            std::string::npos);
}

TEST(Advice, NamesNoFlagThatTheDataDoNotHave) {
  Learnt digits = learnt(0.16, 1.65);
  digits.photographs = false;
  EXPECT_EQ(advice_on(digits, recipe_of(30)),
            "training loss 0.16, test 1.65: it learns by heart; more samples would help most");
}

TEST(Advice, TellsWhoGuesses) {
  EXPECT_EQ(advice_on(learnt(2.303, 2.303, 0.1), recipe_of(5)),
            "training loss 2.30, test 2.30: that is guessing among 10 classes; another --lr, 0.02 "
            "say, or more --epochs");
}

TEST(Advice, SaysNothingOfTheRateAfterFewSteps) {
  Learnt few = learnt(2.303, 2.303, 0.1);
  few.steps = 199;
  EXPECT_EQ(advice_on(few, recipe_of(5)),
            "training loss 2.30, test 2.30: 199 steps are too few to learn from; more --epochs, or "
            "a smaller --batch-size");
  few.steps = 200;
  EXPECT_NE(advice_on(few, recipe_of(5)).find("that is guessing"), std::string::npos);
}

TEST(Advice, TellsWhoDiverges) {
  EXPECT_EQ(advice_on(learnt(9.1, 4.0, 0.1), recipe_of(5)),
            "training loss 9.10, test 4.00: it diverges: guessing among 10 classes has 2.30; a "
            "lower --lr, 0.02 say");
  EXPECT_NE(advice_on(learnt(3.4, 3.4, 0.1), recipe_of(5)).find("that is guessing"),
            std::string::npos);
  Learnt few = learnt(9.1, 4.0, 0.1);
  few.steps = 3;
  EXPECT_NE(advice_on(few, recipe_of(5)).find("a lower --lr"), std::string::npos);
}

TEST(Advice, NamesTheRateOfWhatIsLearnt) {
  Recipe head = recipe_of(5);
  head.head_lr = 0.5F;
  EXPECT_NE(advice_on(learnt(2.303, 2.303), head).find("another --lr, 0.02 say"),
            std::string::npos);
  head.freeze = "all-but-head";
  EXPECT_NE(advice_on(learnt(2.303, 2.303), head).find("another --head-lr, 0.05 say"),
            std::string::npos);
  EXPECT_NE(advice_on(learnt(9.1, 4.0), head).find("a lower --head-lr, 0.05 say"),
            std::string::npos);
  EXPECT_NE(advice_on(learnt(1.10, 1.04, 0.68), head).find("--epochs 10, or less under --freeze"),
            std::string::npos);
}

TEST(Advice, TellsWhoCouldLearnMore) {
  EXPECT_EQ(advice_on(learnt(1.10, 1.04, 0.68), recipe_of(60)),
            "training loss 1.10, test 1.04: it could learn more; --epochs 120, or a larger model");
}

TEST(Advice, IsSilentWhereThereIsNothingToSay) {
  EXPECT_EQ(advice_on(learnt(0.24, 0.27, 0.91), recipe_of(6)), "");   // good, and near
  EXPECT_EQ(advice_on(learnt(0.56, 0.89, 0.73), recipe_of(60)), "");  // between all of them
  EXPECT_EQ(advice_on(learnt(0.1, 0.3, 0.9), recipe_of(6)), "");      // apart, but not far
  EXPECT_EQ(advice_on(learnt(0.16, 1.65), recipe_of(2)), "");         // a trial
  EXPECT_EQ(advice_on(learnt(NAN, 1.65), recipe_of(30)), "");
  Recipe margin = recipe_of(30);
  margin.loss = "arcface";
  EXPECT_EQ(advice_on(learnt(0.16, 1.65), margin), "");
}

}  // namespace
}  // namespace ringlet::train
