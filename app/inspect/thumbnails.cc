#include "app/inspect/thumbnails.h"

#include <algorithm>

#include "base/data_error.h"
#include "data/images/picture_reader.h"
#include "data/images/resample.h"

namespace ringlet::app::inspect {

namespace {

constexpr int kSide = 96;  // of the longer side, in pixels

/// Empty where it cannot be read any more.
Thumbnail::Picture small_picture(const std::filesystem::path& file) {
  data::PictureReader reader;
  data::Resampler resampler;
  try {
    const data::RgbxView picture = reader.load(file, true);
    const int longer = std::max(picture.width, picture.height);
    const auto side = [&](int whole) {
      return longer <= kSide ? whole
                             : std::max(1, static_cast<int>(std::int64_t{kSide} * whole / longer));
    };
    const int width = side(picture.width), height = side(picture.height);
    const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    std::vector<std::uint8_t> planes(3 * pixels);
    resampler.resize(picture, width, height, {0, 0, width, height}, {planes.data()});
    Thumbnail::Picture shown{width, height, std::vector<std::uint8_t>(3 * pixels)};
    for (std::size_t i = 0; i < planes.size(); ++i) {
      shown.pixels[i % pixels * 3 + i / pixels] = planes[i];
    }
    return shown;
  } catch (const DataError&) {
    return {};
  }
}

void add(const std::string& section, const std::string& caption,
         const std::vector<std::filesystem::path>& files, Document& document) {
  Thumbnail shown{section, caption, {}};
  for (const auto& file : files) {
    if (Thumbnail::Picture one = small_picture(file); one.width > 0) {
      shown.pictures.push_back(std::move(one));
    }
  }
  if (shown.pictures.size() == files.size()) document.thumbnails.push_back(std::move(shown));
}

}  // namespace

void add_thumbnails(const FolderHealth& health, const std::filesystem::path& folder,
                    Document& document) {
  constexpr std::size_t kGroups = 24, kClasses = 40, kOfClass = 6;
  for (std::size_t i = 0; i < std::min(kGroups, health.alike.size()); ++i) {
    const FolderHealth::Alike& group = health.alike[i];
    const std::string& first = health.pictures[group.pictures.front()].name;
    const std::string& last = health.pictures[group.pictures.back()].name;
    add(group.across_parts     ? "alike, in train and test"
        : group.across_classes ? "alike, in several classes"
                               : "alike",
        first + (group.equal ? " equals " : " nearly equals ") + last,
        {folder / first, folder / last}, document);
  }
  std::vector<std::vector<std::size_t>> of_class(health.classes.size());
  for (std::size_t i = 0; i < health.pictures.size(); ++i) {
    if (!health.prints[i].defect.empty()) continue;
    of_class[static_cast<std::size_t>(health.pictures[i].label)].push_back(i);
  }
  for (std::size_t label = 0; label < std::min(kClasses, of_class.size()); ++label) {
    const std::vector<std::size_t>& all = of_class[label];
    const std::size_t some = std::min(kOfClass, all.size());
    for (std::size_t k = 0; k < some; ++k) {  // evenly spaced
      const FolderHealth::Picture& picture = health.pictures[all[k * all.size() / some]];
      add(health.classes[label], picture.name, {folder / picture.name}, document);
    }
  }
}

}  // namespace ringlet::app::inspect
