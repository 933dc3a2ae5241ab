#include "train/recipe/recipe_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/recipe/models.h"

namespace ringlet::train {

namespace {

std::vector<std::string> statistics_names() { return {"shard", "world"}; }

void set_batch_norm(Recipe& recipe, const std::string& name) {
  require(name == "shard" || name == "world", "'batch_norm'", "is not shard or world");
  recipe.batch_norm = name == "world" ? BatchStatistics::world : BatchStatistics::shard;
}

/// Whether what --data says in both is a folder and no name. Data may move; whether they are the
/// run's is told by what is in them.
bool are_folders(const OptionValue& own, const OptionValue& given) {
  return data::find_dataset(text_of(own)) == nullptr &&
         data::find_dataset(text_of(given)) == nullptr;
}

OptionTable<Recipe> made() {
  OptionTable<Recipe> table;
  table.add(option("model", &Recipe::model,
                   {.choices = model_names,
                    .other_names = true,
                    .since_first_states = true,
                    .has_flag = false}));
  table.add(option("data", &Recipe::data,
                   {.since_first_states = true, .may_become = are_folders, .has_flag = false}));
  table.add(option("batch_size", &Recipe::batch_size,
                   {.help = "the GLOBAL batch: samples of an optimiser step over all replicas",
                    .range = from(1),
                    .for_photographs = "32 where they are few",
                    .since_first_states = true,
                    .of_runs_only = true}));
  table.add(
      option("epochs", &Recipe::epochs,
             {.help = "times through the training data; --resume may make them more, or fewer",
              .range = from(1),
              .for_photographs = "by their number",
              .since_first_states = true,
              .of_runs_only = true,
              .may_become = may_always}));
  table.add(rate_options());
  table.add(optimizer_options());
  table.add(loss_options());
  table.add(classification_options());
  table.add(schedule_options());
  table.add(option(
      "seed", &Recipe::seed,
      {.help = "of the weights, the order of samples and dropout", .since_first_states = true}));
  table.add(option(
      "shuffle", &Recipe::shuffle,
      {.help = "take the samples in file order", .form = Switch::off, .since_first_states = true}));
  table.add(picture_options());
  table.add(
      option("accumulate", &Recipe::accumulate,
             {.help = "forward and backward passes for each replica's share of a batch; under "
                      "--stages about 4 for each stage where nobody says",
              .range = from(1),
              .since_first_states = true,
              .also = "--micro-batches"}));
  table.add(option("exact", &Recipe::exact,
                   {.help = "add gradients in one fixed tree: the same bits for 1, 2, 4 and 8 "
                            "replicas",
                    .since_first_states = true}));
  table.add(option("shards", &Recipe::shards,
                   {.help = "logical shards of a batch; 0: 8 with --exact, else one for each "
                            "replica",
                    .range = from(0),
                    .since_first_states = true}));
  table.add(gradient_options());
  table.add(precision_options());
  table.add(named_option<Recipe>(
      "batch_norm",
      [](const Recipe& recipe) {
        return recipe.batch_norm == BatchStatistics::world ? "world" : "shard";
      },
      set_batch_norm,
      {.help = "whose batch gives batch norm its mean and variance: of each replica's share (with "
               "--exact of each shard), or of the whole world",
       .choices = statistics_names}));
  table.add(
      option("ema", &Recipe::ema,
             {.help = "test and keep a moving average of the weights, with this decay a step; "
                      "0: the weights themselves",
              .range = from(0).below(1).on_hosts(),
              .value_name = "DECAY"}));
  table.add(best_options());
  table.add(verify_options());
  return table;
}

bool belongs_to_optimizer(const OptionRow& row) {
  return row.only.key != nullptr && std::string_view(row.only.key) == "optimizer";
}

/// States do not tell whole numbers apart.
OptionValue of_type(const OptionValue& value, std::size_t type) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  const bool is_seed = type == OptionValue(std::uint64_t{}).index();
  return whole != nullptr && *whole >= 0 && is_seed ? static_cast<std::uint64_t>(*whole) : value;
}

/// Whether the option that `row` belongs to has one of the values for it.
bool is_among_its_own(const OptionRow& row, const std::string& other) {
  const auto& values = row.only.values;
  return std::find(values.begin(), values.end(), other) != values.end();
}

std::string refusal(const OptionRow& row, const OptionTable<Recipe>& table) {
  if (row.only.refusal != nullptr) return row.only.refusal;
  return fmt::format("is for {} {}; leave it out", table.at(row.only.key).flag_name(),
                     fmt::join(row.only.values, " and "));
}

}  // namespace

const OptionTable<Recipe>& recipe_options() {
  static const OptionTable<Recipe> table = made();
  return table;
}

Option<Recipe> own_option(std::string key, OptionValue standard, OptionFacts facts) {
  Option<Recipe> row(key, standard, std::move(facts));
  row.get = [key, standard](const Recipe& recipe) {
    const auto own = recipe.own.find(key);
    return own == recipe.own.end() ? standard : of_type(own->second, standard.index());
  };
  row.set = [key](Recipe& recipe, const OptionValue& value) { recipe.own[key] = value; };
  return row;
}

bool is_left_out(const OptionRow& row, const OptionValue& value, const Recipe& recipe) {
  return row.of_runs_only && recipe.model.empty() && text_of(value) == "0";
}

void check_ranges(const Recipe& recipe, std::string (*name)(const OptionRow& row),
                  bool own_optimizer, const OptionTable<Recipe>& table) {
  for (const Option<Recipe>& row : table.rows()) {
    const OptionValue value = row.get(recipe);
    if (is_left_out(row, value, recipe)) continue;
    const bool may_be_an_end = own_optimizer && belongs_to_optimizer(row);
    const OptionRow judged = may_be_an_end ? row.with_ends() : OptionRow(row);
    judged.require_taken(value, name(row));
  }
  for (const auto& [key, value] : recipe.own) {
    (void)value;
    require(table.find(key) != nullptr, key.c_str(),
            "is an option that this program does not have");
  }
}

void check_own_task(const Recipe& recipe, std::string (*name)(const OptionRow& row)) {
  const Recipe none;
  for (const Option<Recipe>& row : recipe_options().rows()) {
    if (row.task == nullptr || row.get(recipe) == row.get(none)) continue;
    throw ContractError(fmt::format(
        "{}: is of the loss of {}; leave it out with a task of one's own", name(row), row.task));
  }
}

void check_belongings(const Recipe& recipe, bool begins, bool own_optimizer,
                      const OptionTable<Recipe>& table) {
  const Recipe none;
  for (const Option<Recipe>& row : table.rows()) {
    if (row.only.key == nullptr || row.get(recipe) == row.get(none)) continue;
    if (!begins && !row.only.of_all_runs) continue;
    if (own_optimizer && belongs_to_optimizer(row)) continue;
    if (is_among_its_own(row, text_of(table.get(recipe, row.only.key)))) continue;
    throw ContractError(row.flag_name() + ": " + refusal(row, table));
  }
}

}  // namespace ringlet::train
