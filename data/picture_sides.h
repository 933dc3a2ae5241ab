// How large the pictures of a folder are, by their headers.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/stop_request.h"

namespace ringlet::data {

/// The shorter sides, in pixels.
struct PictureSides {
  std::int64_t pictures = 0;  ///< there are
  std::int64_t known = 0;     ///< of so many, evenly spaced, the header was read; 0: of none
  int smallest = 0, median = 0, largest = 0;
};

/// Of the pictures to train on in a folder that has_image_folders(), of 2,000 at most. What cannot
/// be read is passed over. Throws DataError as find_parts() and list_pictures(), and Stopped.
PictureSides measure_sides(const std::filesystem::path& directory, const StopRequest& stop = {});

/// How many there are to train on in such a folder, with those that a split sets aside. Throws
/// DataError likewise.
std::int64_t pictures_to_train_on(const std::filesystem::path& directory);

}  // namespace ringlet::data
