// Which parts of a folder of pictures are for what:
//
//   DIR/train/CLASS/*   to train on
//   DIR/val/CLASS/*     to test on, or DIR/test/CLASS/*; of both, val
//
//   DIR/train/CLASS/*   alone, or
//   DIR/CLASS/*         which are split (data/picture_split.h)
//
// train may be called training, val valid or validation, and test testing; capitals do not count.
// A folder of such a name that holds pictures and no folder, beside others that do, is a class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringlet::data {

struct PictureParts {
  std::filesystem::path train;       ///< holds the classes to train on; empty: there are none
  std::filesystem::path test;        ///< those to test on; empty: train is to be split
  std::vector<std::string> notes{};  ///< what is not looked at, a line each
};

/// Throws DataError where a part is there under two names, or `directory` cannot be listed.
PictureParts find_parts(const std::filesystem::path& directory);

/// What find_parts() is to be asked about: a folder with a part to train on, or with classes.
bool has_image_folders(const std::filesystem::path& directory);

/// Whether `directory` holds folders with pictures, and no part: classes, or identities.
bool has_class_folders(const std::filesystem::path& directory);

/// The names of folders in `directory` that are parts of it.
std::vector<std::string> names_of_parts(const std::filesystem::path& directory);

/// Whether there is a picture in `folder` itself, be it one that is not read.
bool holds_pictures(const std::filesystem::path& folder);

}  // namespace ringlet::data
