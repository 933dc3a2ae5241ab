#include "app/commands/class_match.h"

#include <fmt/format.h>

#include <cstdio>
#include <numeric>
#include <utility>

#include "app/cli/error_exit.h"
#include "base/one_line.h"
#include "data/renumbered_dataset.h"
#include "train/task/classification.h"

namespace ringlet::app {

namespace {

std::string size_in_words(std::int64_t channels, std::int64_t height, std::int64_t width,
                          std::size_t classes) {
  return fmt::format("images of {} x {} x {} in {} classes", channels, height, width, classes);
}

[[noreturn]] void refuse_size(const Checkpoint& checkpoint, const data::Dataset& set) {
  const train::ModelInfo& info = *checkpoint.info;
  throw UsageError(fmt::format(
      "{} is for {}, but {} has {}", checkpoint.file.string(),
      size_in_words(info.channels, info.height, info.width, info.output_names.size()), set.name(),
      size_in_words(set.channels(), set.height(), set.width(), set.target_names().size())));
}

/// Whether the names are only numbers that a file of labels has given.
bool are_numbers(const std::vector<std::string>& names, bool photographs) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (photographs || names[i] != std::to_string(i)) return false;
  }
  return true;
}

std::vector<std::int32_t> in_order(std::size_t count) {
  std::vector<std::int32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace

ClassMatch match_classes(const Checkpoint& checkpoint, std::shared_ptr<const data::Dataset> set) {
  const std::vector<std::string>& names = set->target_names();
  if (!checkpoint.info) {
    return {set, in_order(names.size()),
            "the model's file does not name its classes: they are taken by number"};
  }
  const train::ModelInfo& info = *checkpoint.info;
  const bool fits = set->channels() == info.channels && set->height() == info.height &&
                    set->width() == info.width;
  if (!fits) refuse_size(checkpoint, *set);
  if (names == info.output_names) return {set, in_order(names.size())};
  auto indices = data::indices_of(names, info.output_names);
  std::string note;
  const bool by_number =
      are_numbers(names, set->photographs()) || are_numbers(info.output_names, info.photographs);
  if (!indices && by_number) {
    if (names.size() != info.output_names.size()) refuse_size(checkpoint, *set);
    indices = in_order(names.size());
    note =
        "the classes of the one have names, those of the other have not: they are taken by "
        "number";
  }
  if (!indices) {
    if (gives_embeddings(checkpoint)) {
      throw UsageError(fmt::format(
          "{} has centres of the classes {}, and {} has others, {}; 'ringlet verify' measures "
          "embeddings of classes that were never seen",
          checkpoint.centres.string(), data::some_of(info.output_names), set->name(),
          data::some_of(names)));
    }
    throw UsageError(fmt::format(
        "{} is for the classes {}, but {} has {}; name data whose classes are among the model's",
        checkpoint.file.string(), data::some_of(info.output_names), set->name(),
        data::some_of(names)));
  }
  auto matched =
      std::make_shared<const data::RenumberedDataset>(std::move(set), info.output_names, *indices);
  return {std::move(matched), *std::move(indices), std::move(note)};
}

void print_answers(const Checkpoint& checkpoint, const std::string& model, const data::Dataset& set,
                   const ClassMatch& match, const std::string& note,
                   const train::Evaluation& result) {
  fmt::print("{} ({}) on {}\n", on_one_line(checkpoint.file.string()), model,
             on_one_line(set.description()));
  for (const std::string& line : {note, match.note}) {
    if (!line.empty()) fmt::print("{}\n", on_one_line(line));
  }
  const std::vector<train::ClassCount> all = train::class_counts(result);
  std::vector<train::ClassCount> counts;
  std::vector<std::string> names;
  for (const std::int32_t index : match.indices) {
    if (all.empty()) break;  // a task that counts no classes
    counts.push_back(all[static_cast<std::size_t>(index)]);
    names.push_back(match.set->target_names()[static_cast<std::size_t>(index)]);
  }
  fmt::print("\n");
  train::print_classes(stdout, result, counts, names);
}

}  // namespace ringlet::app
