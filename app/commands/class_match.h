// A data set as a model sees it that was trained on another one: by the names of the classes. The
// classes may come in another order, and some may be missing. Classes that have no names, as those
// of IDX files, are taken by number, and that is said.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/commands/checkpoint.h"
#include "data/dataset.h"
#include "train/reports/reports.h"

namespace ringlet::app {

struct ClassMatch {
  std::shared_ptr<const data::Dataset> set;  ///< its classes are the model's
  std::vector<std::int32_t> indices;         ///< of the data's own classes among them
  std::string note{};                        ///< a line for the user; empty: nothing to tell
};

/// Throws UsageError for images of another size, and for classes that the model does not know; it
/// has both lists.
ClassMatch match_classes(const Checkpoint& checkpoint, std::shared_ptr<const data::Dataset> set);

/// Prints which model saw which data, and then what it made of them, by the data's own classes.
/// `set`: the data as they were before match_classes().
void print_answers(const Checkpoint& checkpoint, const std::string& model, const data::Dataset& set,
                   const ClassMatch& match, const std::string& note,
                   const train::Evaluation& result);

}  // namespace ringlet::app
