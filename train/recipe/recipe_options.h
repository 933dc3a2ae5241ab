// The table of a recipe's options.
//
// A program on top of the library adds rows of its own; their values lie in Recipe::own, are kept
// in states and checked like Ringlet's. With --lr 0.1 --temperature 2:
//
//   OptionTable<Recipe> table = recipe_options();
//   table.add(own_option("temperature", 1.0, {.help = "of it", .range = above(0)}));
//
//   table.set(recipe, given_options(table, argc, argv));
//   const double temperature = std::get<double>(table.get(recipe, "temperature"));
#pragma once

#include <string>
#include <vector>

#include "train/recipe/option_table.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// Ringlet's rows, in the order of the help.
const OptionTable<Recipe>& recipe_options();

/// A row of a program's own, whose value is `standard` where nobody says another.
Option<Recipe> own_option(std::string key, OptionValue standard, OptionFacts facts);

/// Whether `value` says that a Learner's recipe, which names no model, has no such option: 0.
bool is_left_out(const OptionRow& row, const OptionValue& value, const Recipe& recipe);

/// Throws ContractError for a value that no recipe has. `name` says what a row is called there.
/// `own_optimizer`: it is the program's, and takes the ends of ranges that Ringlet's do not.
void check_ranges(const Recipe& recipe, std::string (*name)(const OptionRow& row),
                  bool own_optimizer = false, const OptionTable<Recipe>& table = recipe_options());

/// Throws ContractError for an option of Ringlet's own tasks, where the program trains for its own.
void check_own_task(const Recipe& recipe, std::string (*name)(const OptionRow& row));

/// Throws ContractError for an option that means nothing beside the others, naming its flag.
/// `begins`: the run does, and is not resumed. `own_optimizer`: it is the program's, which may read
/// what Ringlet's do not.
void check_belongings(const Recipe& recipe, bool begins, bool own_optimizer,
                      const OptionTable<Recipe>& table = recipe_options());

}  // namespace ringlet::train
