// A folder of pictures: what a run on it would learn from, and what it would stumble over.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/inspect/folder_health.h"
#include "app/inspect/format.h"
#include "app/inspect/thumbnails.h"
#include "data/image_folder.h"
#include "data/open_dataset.h"

namespace ringlet::app::inspect {

namespace {

namespace fs = std::filesystem;
using Pictures = std::vector<FolderHealth::Picture>;

constexpr std::size_t kMostRows = 100;  // of what is alike, or broken

std::string parts_in_words(const FolderHealth& health, const fs::path& folder) {
  const std::string train = health.parts.train.filename().string();
  if (!health.is_split) return train + " and " + health.parts.test.filename().string();
  return health.parts.train == folder ? "a folder for each class" : train + " alone";
}

/// "unequal: dress has 12 times as many as hat"
std::string balance_of(const FolderHealth& health) {
  constexpr double kEven = 1.5, kUneven = 4;
  std::vector<std::int64_t> counts;
  for (std::int32_t label = 0; label < std::ssize(health.classes); ++label) {
    counts.push_back(health.count(label, false));
  }
  if (counts.empty()) return "there is no class";
  const auto least = std::min_element(counts.begin(), counts.end());
  const auto most = std::max_element(counts.begin(), counts.end());
  if (*least == 0) return "some classes have no picture to train on";
  const double times = static_cast<double>(*most) / static_cast<double>(*least);
  if (*least == *most) return fmt::format("even: {} pictures each to train on", *most);
  if (times <= kEven) return fmt::format("even: {} to {} pictures to train on", *least, *most);
  const auto name = [&](auto at) {
    return health.classes[static_cast<std::size_t>(at - counts.begin())];
  };
  std::string text =
      fmt::format("{}uneven: {} has {:.1f} times as many as {}", times < kUneven ? "a little " : "",
                  name(most), times, name(least));
  if (times >= kUneven) text += "; --class-weights balanced lets all count the same";
  return text;
}

Table classes_of(const FolderHealth& health) {
  Table table{"classes", {"class", "to train on", "to test on", "broken", "share of all"}, {}};
  const auto all = static_cast<double>(std::max<std::size_t>(1, health.pictures.size()));
  for (std::int32_t label = 0; label < std::ssize(health.classes); ++label) {
    const auto [train, test, broken] = health.counts[static_cast<std::size_t>(label)];
    table.rows.push_back({health.classes[static_cast<std::size_t>(label)],
                          train,
                          test,
                          broken,
                          {static_cast<double>(train + test + broken) / all, Form::share}});
  }
  return table;
}

Table formats_of(const FolderHealth& health) {
  std::map<std::string, std::int64_t> counts;
  for (const data::PicturePrint& print : health.prints) {
    if (print.defect.empty()) ++counts[data::name_of(print.format)];
  }
  Table table{"formats", {"format", "pictures"}, {}};
  for (const auto& [name, count] : counts) table.rows.push_back({name, count});
  return table;
}

Table broken_of(const FolderHealth& health, const fs::path& folder) {
  Table table{"broken", {"broken picture", "why"}, {}};
  const std::string before = folder.string() + "/";
  for (std::size_t i = 0; i < health.prints.size() && table.rows.size() < kMostRows; ++i) {
    if (health.prints[i].defect.empty()) continue;
    std::string why = health.prints[i].defect;
    const std::string& name = health.pictures[i].name;
    if (why.starts_with(before + name + ": ")) why.erase(0, before.size() + name.size() + 2);
    table.rows.push_back({name, why});
  }
  return table;
}

Table foreign_of(const FolderHealth& health) {
  Table table{"passed over", {"ending", "pictures", "cure"}, {}};
  for (const auto& [ending, count] : health.foreign) {
    table.rows.push_back({ending, count, cure_for(ending)});
  }
  return table;
}

/// Files that are passed over, by name.
Table others_of(const FolderHealth& health) {
  Table table{"not read", {"file", "why"}, {}};
  for (const std::string& name : health.foreign_names) {
    table.rows.push_back({name, "such pictures are not read"});
  }
  for (const std::string& name : health.passed_names) {
    table.rows.push_back({name, "hidden, or no picture by its name"});
  }
  return table;
}

Table alike_of(const FolderHealth& health) {
  Table table{"alike", {"picture", "is like", "how", "lies"}, {}};
  for (const FolderHealth::Alike& group : health.alike) {
    const std::string& first = health.pictures[group.pictures[0]].name;
    for (std::size_t i = 1; i < group.pictures.size() && table.rows.size() < kMostRows; ++i) {
      table.rows.push_back({health.pictures[group.pictures[i]].name, first,
                            group.equal ? "equal" : "nearly equal",
                            group.across_parts     ? "in train and test"
                            : group.across_classes ? "in several classes"
                                                   : "in one class"});
    }
  }
  return table;
}

/// How many pictures are in groups of which `is_meant` says so.
template <class IsMeant>
std::int64_t pictures_in(const FolderHealth& health, IsMeant is_meant) {
  std::int64_t count = 0;
  for (const FolderHealth::Alike& group : health.alike) {
    if (is_meant(group)) count += std::ssize(group.pictures);
  }
  return count;
}

void add_sizes(const FolderHealth& health, Document& document) {
  const std::vector<int> sides = health.shorter_sides();
  if (sides.empty()) return;
  document.facts.push_back({"smallest shorter side", sides.front()});
  document.facts.push_back({"median shorter side", sides[sides.size() / 2]});
  document.facts.push_back({"largest shorter side", sides.back()});
}

void add_choice(const FolderHealth& health, Document& document) {
  if (health.is_split && health.cannot_be_split.empty()) {
    document.facts.push_back({"would be split", fmt::format("--split {}", data::kUsualSplit)});
  }
  if (health.fit.image_size == 0) return;
  document.facts.push_back({"model that would be chosen", health.fit.model});
  document.facts.push_back({"image size that would be chosen", health.fit.image_size});
  document.facts.push_back({"recipe that would be chosen", health.recipe});
}

void warn(const FolderHealth& health, Document& document) {
  std::vector<std::string>& warnings = document.warnings;
  warnings = health.parts.notes;
  if (!health.cannot_be_split.empty()) warnings.push_back(health.cannot_be_split);
  if (const std::int64_t broken = health.broken(); broken > 0) {
    warnings.push_back(fmt::format(
        "{} of {} pictures cannot be read: mend or remove them, or train with --skip-broken",
        broken, health.pictures.size()));
  }
  const std::int64_t leaked = pictures_in(health, [](auto& g) { return g.across_parts; });
  if (leaked > 0) {
    warnings.push_back(fmt::format(
        "{} pictures are alike though some are trained on and some are tested on: the test is "
        "better than the model is; remove those to test on",
        leaked));
  }
  const std::int64_t doubted = pictures_in(health, [](auto& g) { return g.across_classes; });
  if (doubted > 0) {
    warnings.push_back(fmt::format(
        "{} pictures are alike though they lie in different classes: look whether one is wrong",
        doubted));
  }
  for (std::size_t label = 0; label < health.classes.size(); ++label) {
    const auto number = static_cast<std::int32_t>(label);
    const std::int64_t train = health.count(number, false), test = health.count(number, true);
    if (train == 0) {
      warnings.push_back(health.classes[label] + " has no picture to train on");
    } else if (test == 0 && health.cannot_be_split.empty()) {
      warnings.push_back(health.classes[label] + " has no picture to test on");
    }
  }
  if (!health.foreign.empty()) {
    warnings.push_back("some pictures are passed over, since they are not read by their endings");
  }
}

bool recognises_pictures(const Subject& subject) {
  const std::string name = subject.path.string();
  return subject.is_folder && data::find_dataset(name) == nullptr && data::is_picture_folder(name);
}

Document describe_pictures(const Subject& subject, const Wishes& wishes) {
  const fs::path& folder = subject.path;
  const FolderHealth health = examine_folder(folder);
  Document document{folder.string(), "pictures", {}, {}};
  document.facts = {{"parts", parts_in_words(health, folder)},
                    {"number of classes", std::ssize(health.classes)},
                    {"pictures", std::ssize(health.pictures)},
                    {"to train on", health.count(false)},
                    {"to test on", health.count(true)}};
  add_choice(health, document);
  add_sizes(health, document);
  document.facts.push_back({"balance", balance_of(health)});
  document.facts.push_back({"broken pictures", health.broken()});
  document.facts.push_back({"equal pictures", health.equal_pictures});
  document.facts.push_back({"nearly equal pictures", health.near_pictures});
  document.facts.push_back({"other files", health.passed});
  document.tables = {classes_of(health), formats_of(health), broken_of(health, folder),
                     foreign_of(health), others_of(health),  alike_of(health)};
  warn(health, document);
  if (wishes.thumbnails) add_thumbnails(health, folder, document);
  return document;
}

}  // namespace

const Format kPictures{recognises_pictures, describe_pictures};

}  // namespace ringlet::app::inspect
