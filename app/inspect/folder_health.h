// What is in a folder of pictures, and what a run on it would meet: every picture is decoded once.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/picture_parts.h"
#include "data/picture_print.h"
#include "train/recipe/picture_fit.h"

namespace ringlet::app::inspect {

struct FolderHealth {
  struct Picture {
    std::string name;  ///< below the folder: "train/dress/1.jpg"
    std::int32_t label = 0;
    bool tested = false;  ///< it lies in the part to test on, or would be split off
  };
  struct Alike {
    std::vector<std::size_t> pictures;  ///< two or more, ascending
    bool equal = false;                 ///< else some are nearly equal alone
    bool across_parts = false;          ///< some are trained on, and some are tested on
    bool across_classes = false;
  };

  data::PictureParts parts;
  bool is_split = false;          ///< there is no part to test on
  std::string cannot_be_split{};  ///< why; empty: it can, or need not
  std::vector<std::string> classes;
  std::vector<Picture> pictures;
  std::vector<data::PicturePrint> prints;       ///< of each picture
  std::vector<Alike> alike;                     ///< those across parts first
  std::map<std::string, std::int64_t> foreign;  ///< pictures that are not read, by their ending
  std::int64_t passed = 0;                      ///< hidden, or no pictures
  std::vector<std::string> passed_names;        ///< some of them
  std::vector<std::string> foreign_names;       ///< some of the pictures that are not read
  train::PictureFit fit;                        ///< what a run would choose; size 0: nothing
  std::string recipe;                           ///< the same, as flags
  std::int64_t equal_pictures = 0;              ///< that have an equal one
  std::int64_t near_pictures = 0;               ///< that have a nearly equal one, and no equal one

  /// Of each class: to train on, to test on, broken.
  std::vector<std::array<std::int64_t, 3>> counts;

  std::int64_t count(std::int32_t label, bool tested) const {
    return counts[static_cast<std::size_t>(label)][tested ? 1 : 0];
  }
  std::int64_t count(bool tested) const;  ///< pictures that can be read
  std::int64_t broken() const;
  std::vector<int> shorter_sides() const;  ///< of what can be decoded, ascending
};

/// Throws DataError as data::find_parts() and data::list_pictures().
FolderHealth examine_folder(const std::filesystem::path& folder);

/// What to do with pictures of an ending that is not read, in a line.
std::string cure_for(const std::string& ending);

}  // namespace ringlet::app::inspect
