#include "data/picture_split.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/data_error.h"

namespace ringlet::data {

namespace {

/// Pictures that are alike.
struct Group {
  std::uint64_t hash = ~std::uint64_t{0};  // the smallest of theirs
  std::vector<std::int64_t> pictures;
  std::int32_t label = -1;
  bool of_several_classes = false;

  std::int64_t size() const { return std::ssize(pictures); }
};

std::vector<Group> groups_of(std::span<const std::int32_t> labels,
                             std::span<const PicturePrint> prints) {
  const std::vector<std::size_t> first = alike(prints, true);
  std::vector<Group> groups(prints.size());
  for (std::size_t i = 0; i < prints.size(); ++i) {
    Group& group = groups[first[i]];
    group.of_several_classes |= group.label >= 0 && group.label != labels[i];
    group.label = labels[i];
    group.hash = std::min(group.hash, prints[i].file);
    group.pictures.push_back(static_cast<std::int64_t>(i));
  }
  std::erase_if(groups, [](const Group& group) { return group.pictures.empty(); });
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.hash < b.hash; });
  return groups;
}

/// Which of a class's own groups are tested on, of `pictures` in all. `own` is by hash.
std::vector<const Group*> choose(const std::vector<const Group*>& own, std::int64_t pictures,
                                 double share) {
  const std::int64_t wanted =
      std::clamp<std::int64_t>(std::llround(share * static_cast<double>(pictures)), 1,
                               std::max<std::int64_t>(1, pictures - 1));
  std::vector<const Group*> chosen;
  std::int64_t count = 0;
  for (const Group* group : own) {
    const std::int64_t with = count + group->size();
    if (with < pictures && std::abs(with - wanted) < std::abs(count - wanted)) {
      chosen.push_back(group);
      count = with;
    }
  }
  if (!chosen.empty() || own.empty()) return chosen;
  const Group* least = *std::min_element(  // each is larger than twice the share
      own.begin(), own.end(), [](auto* a, auto* b) { return a->size() < b->size(); });
  if (least->size() < pictures) chosen.push_back(least);
  return chosen;
}

[[noreturn]] void refuse(const std::string& folder, const std::string& name,
                         std::int64_t pictures) {
  constexpr const char* kRemedy =
      "; add others, remove the class, or put pictures of each class to test on into val/CLASS and "
      "the others into train/CLASS";
  if (pictures == 1) {
    throw DataError(folder + ": the class " + name +
                    " has one picture, and a split takes two, one to train on and one to test on" +
                    kRemedy);
  }
  throw DataError(folder + ": the " + std::to_string(pictures) + " pictures of the class " + name +
                  " cannot be split: they are alike, or like those of other classes" + kRemedy);
}

}  // namespace

PictureSplit split_pictures(const std::string& folder, const std::vector<std::string>& classes,
                            std::span<const std::int32_t> labels,
                            std::span<const PicturePrint> prints, double share,
                            bool allow_unseen_targets) {
  const std::vector<Group> groups = groups_of(labels, prints);
  std::vector<std::vector<const Group*>> own(classes.size());
  std::vector<std::int64_t> pictures(classes.size());
  for (const std::int32_t label : labels) ++pictures[static_cast<std::size_t>(label)];
  PictureSplit split;
  for (const Group& group : groups) {
    if (!group.of_several_classes) own[static_cast<std::size_t>(group.label)].push_back(&group);
    if (group.size() > 1) split.kept_together += group.size();
  }
  std::vector<bool> tested(labels.size());
  for (std::size_t label = 0; label < classes.size(); ++label) {
    if (pictures[label] == 0) continue;
    const auto chosen = choose(own[label], pictures[label], share);
    if (chosen.empty() && !allow_unseen_targets) refuse(folder, classes[label], pictures[label]);
    for (const Group* group : chosen) {
      for (const std::int64_t i : group->pictures) tested[static_cast<std::size_t>(i)] = true;
    }
  }
  for (std::size_t i = 0; i < tested.size(); ++i) {
    (tested[i] ? split.test : split.train).push_back(static_cast<std::int64_t>(i));
  }
  return split;
}

}  // namespace ringlet::data
