// The tables of a recipe's options and of what a run has besides: what each row checks, keeps and
// says.
#include "train/recipe/recipe_options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/recipe_json.h"
#include "train/recipe/models.h"
#include "train/setup/run_options.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

std::string flag_of(const OptionRow& row) { return row.flag_name(); }

/// A value that differs from `value` and is still one of the row's.
OptionValue another(const OptionRow& row, const OptionValue& value) {
  if (row.is_switch()) return !std::get<bool>(value);
  if (row.choices != nullptr) {
    const OptionValue last = row.choices().back();
    return last == value ? row.choices().front() : last;
  }
  if (std::holds_alternative<std::string>(value)) return std::string("another");
  if (std::holds_alternative<double>(value)) return std::get<double>(value) / 2 + 0.125;
  if (std::holds_alternative<std::int64_t>(value)) return std::get<std::int64_t>(value) + 1;
  return std::get<std::uint64_t>(value) + 1;
}

TEST(RecipeOptions, ReachEachFieldAndNoOther) {
  for (const Option<Recipe>& row : recipe_options().rows()) {
    SCOPED_TRACE(row.key);
    Recipe recipe;
    const OptionValue before = row.get(recipe), after = another(row, before);
    ASSERT_NE(before, after);
    row.set(recipe, after);
    EXPECT_EQ(row.get(recipe), after);
    EXPECT_NE(recipe, Recipe()) << "operator== looks at it";
    for (const Option<Recipe>& other : recipe_options().rows()) {
      if (other.key == row.key) continue;
      EXPECT_EQ(other.get(recipe), other.get(Recipe())) << other.key;
    }
    EXPECT_EQ(recipe_from_json(to_json(recipe), "it"), recipe) << "states keep it";
  }
}

TEST(RecipeOptions, TakeTheirDefaults) {
  EXPECT_NO_THROW(check_ranges({}, flag_of));
  EXPECT_NO_THROW(check_belongings({}, true, false));
  for (const std::string& model : model_names()) {
    EXPECT_NO_THROW(check_ranges(default_recipe(model), flag_of)) << model;
    EXPECT_NO_THROW(check_belongings(default_recipe(model), true, false)) << model;
  }
}

TEST(RecipeOptions, RefuseWhatIsBeyondTheirRangeInFilesFlagsAndPrograms) {
  struct Case {
    const char* key;
    OptionValue value;
    const char* wanted;
  };
  for (const Case& c :
       {Case{"label_smoothing", 1.0, "a number of at least 0 and below 1"},
        Case{"momentum", 1.5, "a number from 0 to 1"}, Case{"eps", 0.0, "a number above 0"},
        Case{"lr", -0.1, "a number of at least 0"},
        Case{"epochs", std::int64_t{0}, "a whole number from 1 to 2147483647"},
        Case{"image_size", std::int64_t{5000}, "a whole number from 0 to 4096"},
        Case{"augment", std::string("swirl"), "one of none, flip"}}) {
    SCOPED_TRACE(c.key);
    const Option<Recipe>& row = recipe_options().at(c.key);
    Recipe recipe;
    EXPECT_TRUE(
        says(message_of<ContractError>([&] { recipe_options().set(recipe, c.key, c.value); }),
             {row.flag_name() + ": ", c.wanted}));
    row.set(recipe, c.value);
    EXPECT_TRUE(says(message_of<ContractError>([&] { check_ranges(recipe, flag_of); }),
                     {row.flag_name() + ": ", c.wanted}));
    if (row.with_ends().takes(c.value)) continue;
    EXPECT_TRUE(says(message_of<FileError>([&] { recipe_from_json(to_json(recipe), "it"); }),
                     {"it: the recipe cannot be read ('" + row.key + "' is ", "which no run has"}));
  }
}

TEST(RecipeOptions, SayWhatANumberIsWhereDevicesHaveAnother) {
  for (const auto& [key, value, words] : std::vector<std::tuple<const char*, double, const char*>>{
           {"beta1", 0.99999999,
            "1 as f32, which devices compute in; give another number of at "
            "least 0 and below 1"},
           {"beta2", 0.99999999, "1 as f32"},
           {"label_smoothing", 0.99999999, "1 as f32"},
           {"eps", 1e-46, "0 as f32, which devices compute in; give another number above 0"},
           {"scale", 1e-46,
            "0 as f32, which devices compute in; give another number above 0 and "
            "up to 1000"},
           {"clip_norm", 1e-46,
            "0 as f32, which devices compute in; give another number of at "
            "least 0"},
           {"lr", 1e-46, "0 as f32"},
           {"head_lr", 1e-46, "0 as f32"},
           {"weight_decay", 1e-46, "0 as f32"},
           {"momentum", 1e-46, "0 as f32"}}) {
    const std::string text = text_of(value);
    const Option<Recipe>& row = recipe_options().at(key);
    EXPECT_FALSE(row.parse(text)) << key;
    EXPECT_TRUE(says(row.refusal(text), {"is ", words})) << key;
    Recipe recipe;
    EXPECT_TRUE(says(message_of<ContractError>([&, &key = key, &value = value] {
                       recipe_options().set(recipe, key, value);
                     }),
                     {row.flag_name() + ": " + text + " is " + words}));
  }
  const OptionRow& lr = recipe_options().at("lr");
  EXPECT_TRUE(lr.parse("1e-45")) << "which f32 holds";
  EXPECT_EQ(lr.refusal("-1e-46"), "is not a number of at least 0");
}

// It is 1 less the decay that devices have, and the host computes that.
TEST(RecipeOptions, OfAnAverageMayBeAsNearToOneAsADoubleCanBe) {
  const OptionRow& row = recipe_options().at("ema");
  EXPECT_TRUE(row.parse("0.99999999"));
  EXPECT_FALSE(row.parse("1"));
  EXPECT_FALSE(row.parse("0.99999999999999999")) << "it is 1 in double";
}

TEST(RecipeOptions, RefuseWholeNumbersThatTheirFieldsCannotHold) {
  const std::int64_t beyond = (std::int64_t{1} << 32) + 1;
  nlohmann::json json = to_json(Recipe());
  json["epochs"] = beyond;
  EXPECT_TRUE(says(message_of<FileError>([&] { recipe_from_json(json, "it"); }),
                   {"'epochs' is too large or too small"}));
  Recipe recipe;
  EXPECT_TRUE(
      says(message_of<ContractError>([&] { recipe_options().at("epochs").set(recipe, beyond); }),
           {"'epochs' is too large or too small"}));
  EXPECT_EQ(recipe, Recipe());
}

TEST(RecipeOptions, OfAProgramsOwnOptimiserMayBeTheEndsOfTheirRanges) {
  Recipe recipe;
  recipe.optimizer = "mine";
  recipe.eps = 0;
  EXPECT_NO_THROW(check_ranges(recipe, flag_of, true));
  EXPECT_NO_THROW(recipe_from_json(to_json(recipe), "it"));
  EXPECT_THROW(check_ranges(recipe, flag_of), ContractError);
}

Option<Recipe> temperature() {
  return own_option("temperature", 1.0, {.help = "of the softmax", .range = above(0)});
}

TEST(OwnOptions, AreKeptInStatesAndCheckedWhereTheyAreKnown) {
  OptionTable<Recipe> table = recipe_options();
  table.add(temperature());
  Recipe recipe;
  EXPECT_EQ(std::get<double>(table.get(recipe, "temperature")), 1);
  table.set(recipe, "temperature", 2.0);
  EXPECT_EQ(std::get<double>(table.get(recipe, "temperature")), 2);
  EXPECT_TRUE(says(message_of<ContractError>([&] { table.set(recipe, "temperature", 0.0); }),
                   {"--temperature: 0 is not a number above 0"}));
  const Recipe read = recipe_from_json(to_json(recipe), "it");
  EXPECT_EQ(read, recipe);
  EXPECT_NO_THROW(check_ranges(read, flag_of, false, table));
  EXPECT_TRUE(says(message_of<ContractError>([&] { check_ranges(read, flag_of); }),
                   {"temperature: is an option that this program does not have"}));
}

TEST(OwnOptions, KeepWholeNumbersWithoutASign) {
  OptionTable<Recipe> table = recipe_options();
  table.add(own_option("salt", std::uint64_t{1}, {}));
  for (const std::uint64_t salt : {std::uint64_t{7}, ~std::uint64_t{0}}) {
    Recipe recipe;
    table.set(recipe, "salt", salt);
    const Recipe read = recipe_from_json(nlohmann::json::parse(to_json(recipe).dump()), "it");
    EXPECT_EQ(table.get(read, "salt"), OptionValue(salt));
    EXPECT_NO_THROW(check_ranges(read, flag_of, false, table));
  }
}

TEST(OwnOptions, AreGivenByFlagsAndVariablesLikeRinglets) {
  OptionTable<Recipe> table = recipe_options();
  table.add(temperature());
  ASSERT_EQ(setenv("RINGLET_TEMPERATURE", "3", 1), 0);  // NOLINT(concurrency-mt-unsafe)
  ASSERT_EQ(setenv("RINGLET_EPOCHS", "7", 1), 0);       // NOLINT(concurrency-mt-unsafe)
  ASSERT_EQ(setenv("RINGLET_NO_EXIF", "true", 1), 0);   // NOLINT(concurrency-mt-unsafe)
  const std::vector<const char*> words{"program",      "--lr=0.5", "--epochs",      "9",
                                       "--no-shuffle", "--exact",  "--no-nesterov", "--normalize",
                                       "none"};
  const GivenOptions given = given_options(table, static_cast<int>(words.size()), words.data());
  unsetenv("RINGLET_TEMPERATURE");  // NOLINT(concurrency-mt-unsafe)
  unsetenv("RINGLET_EPOCHS");       // NOLINT(concurrency-mt-unsafe)
  unsetenv("RINGLET_NO_EXIF");      // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(given, (GivenOptions{{"temperature", 3.0},
                                 {"lr", 0.5},
                                 {"epochs", std::int64_t{9}},
                                 {"shuffle", false},
                                 {"exact", true},
                                 {"nesterov", false},
                                 {"normalize", false},
                                 {"exif", false}}));
  const auto message = [&](const std::vector<const char*>& wrong) {
    return message_of<ContractError>(
        [&] { given_options(table, static_cast<int>(wrong.size()), wrong.data()); });
  };
  EXPECT_TRUE(says(message({"", "--lr"}), {"--lr: needs a value"}));
  EXPECT_TRUE(says(message({"", "--exact=false"}), {"--exact: is a switch: it takes no value"}));
  EXPECT_TRUE(says(message({"", "--lr", "fast"}), {"--lr: 'fast' is not a number of at least 0"}));
  EXPECT_TRUE(says(message({"", "--rate", "1"}), {"there is no flag --rate", "--temperature"}));
}

TEST(OwnOptions, AreCheckedBeforeARunBegins) {
  TrainOptions options = plain_options(1);
  options.own_options = {temperature()};
  const auto message = [&] {
    return message_of<ContractError>([&] { make_run_setup(options, formula_splits(64), 1); });
  };
  options.recipe.own = {{"temperature", 2.0}};
  EXPECT_NO_THROW(make_run_setup(options, formula_splits(64), 1));
  options.recipe.own = {{"temperature", -2.0}};
  EXPECT_TRUE(says(message(), {"--temperature: -2 is not a number above 0"}));
  options.own_options.push_back(own_option("lr", 1.0, {}));
  EXPECT_TRUE(says(message(), {"there is an option 'lr' (--lr) already; give 'lr' another name"}));
}

TEST(RunOptions, ReachEachFieldAndNoOther) {
  for (const Option<TrainOptions>& row : run_options().rows()) {
    SCOPED_TRACE(row.key);
    TrainOptions options;
    const OptionValue after = another(row, row.get(options));
    row.set(options, after);
    EXPECT_EQ(row.get(options), after);
    for (const Option<TrainOptions>& other : run_options().rows()) {
      if (other.key == row.key) continue;
      EXPECT_EQ(other.get(options), other.get(TrainOptions())) << other.key;
    }
  }
}

TEST(RunOptions, TakeTheirDefaultsAndNothingBelowTheirRange) {
  EXPECT_NO_THROW(check_run_ranges({}));
  for (const Option<TrainOptions>& row : run_options().rows()) {
    if (!std::holds_alternative<std::int64_t>(row.get({}))) continue;
    TrainOptions options;
    row.set(options, static_cast<std::int64_t>(row.range.min) - 1);
    if (row.open_below_zero) {
      EXPECT_NO_THROW(check_run_ranges(options)) << row.key;
    } else {
      EXPECT_TRUE(says(message_of<ContractError>([&] { check_run_ranges(options); }),
                       {row.flag_name() + ": "}));
    }
  }
}

TEST(RunOptions, AreCheckedBeforeARunOfTheLibrary) {
  TrainOptions options = plain_options(1);
  options.execution.comm_timeout = 0;
  EXPECT_TRUE(
      says(message_of<ContractError>([&] { make_run_setup(options, formula_splits(64), 1); }),
           {"--comm-timeout: 0 is not a number of at least 0.01"}));
}

}  // namespace
}  // namespace ringlet::train
