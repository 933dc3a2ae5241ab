#include "data/picture_sides.h"

#include <algorithm>
#include <vector>

#include "base/data_error.h"
#include "data/images/image.h"
#include "data/in_parallel.h"
#include "data/picture_dataset.h"
#include "data/picture_list.h"
#include "data/picture_parts.h"

namespace ringlet::data {

PictureSides measure_sides(const std::filesystem::path& directory, const StopRequest& stop) {
  constexpr std::int64_t kMost = 2000;
  const std::filesystem::path folder = find_parts(directory).train;
  const PictureList list = list_pictures(folder);
  PictureSides found{.pictures = std::ssize(list.files)};
  std::vector<int> sides(static_cast<std::size_t>(std::min(found.pictures, kMost)));
  in_parallel(
      std::ssize(sides), reading_threads(),
      [&](std::int64_t i) {
        thread_local std::vector<std::uint8_t> bytes;
        const auto at = static_cast<std::size_t>(i * found.pictures / std::ssize(sides));
        try {
          const PictureExtents size = look_at_picture(folder / list.files[at].path, bytes);
          sides[static_cast<std::size_t>(i)] = std::min(size.width, size.height);
        } catch (const DataError&) {  // it is told when it is read
        }
      },
      stop);
  std::erase(sides, 0);
  if (sides.empty()) return found;
  std::sort(sides.begin(), sides.end());
  found.known = std::ssize(sides);
  found.smallest = sides.front();
  found.median = sides[sides.size() / 2];
  found.largest = sides.back();
  return found;
}

std::int64_t pictures_to_train_on(const std::filesystem::path& directory) {
  return std::ssize(list_pictures(find_parts(directory).train).files);
}

}  // namespace ringlet::data
