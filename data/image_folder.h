// A folder of pictures, a folder for each class:
//
//   DIR/train/CLASS/*       and DIR/val/CLASS/* or DIR/test/CLASS/*; of both, val
//   DIR/train/CLASS/*       alone, or
//   DIR/CLASS/*             which are split (data/picture_split.h)
//
// as torchvision's ImageFolder has them. data/picture_parts.h says which folder is which part.
// Classes are numbered by name, pictures by folder and name,
// both by code point. Folders below a class's are its own; symbolic links are followed. What is
// hidden (".DS_Store"), and what has no picture's name, is passed over, and named in Splits::notes.
//
// Pictures are decoded when they are asked for. hash() is over the classes, the files' names below
// train or val, their fingerprints (data/fingerprint.h) and the image size: neither over where the
// folder lies nor over times. statistics() decode 4096 pictures at most, evenly spaced over the
// set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/picture_parts.h"
#include "data/picture_spec.h"

namespace ringlet::data {

struct ImageFolderOptions {
  int image_size = 224;  ///< pixels of each side that a model sees, at least 1
  bool exif = true;      ///< turn JPEGs as their Exif orientation says; Pillow does not
  bool allow_unseen_targets = false;  ///< a class may have no picture in train, or in val
  /// Training pictures whose shorter side has more pixels are made smaller, so that it has these,
  /// before random-resized-crop cuts from them; a cache can hold them then. 0: cut from the whole.
  int crop_from = 0;
  /// The share that is tested on where nothing else is there to test on; 0: kUsualSplit, but under
  /// only_test all. Refused where there is something.
  double split = 0;
  bool skip_broken = false;  ///< decode all at the start, and leave out those that cannot be
  bool only_test = false;    ///< nobody reads the training pictures: skip_broken passes them over
  StopRequest stop_requested{};  ///< see DatasetInfo
};

/// Whether load_image_folder() splits the pictures of `directory`.
bool splits_pictures(const std::filesystem::path& directory);

/// Throws DataError: no class, a class without a picture, a class of val that train does not have,
/// one that cannot be split, what cannot be listed.
Splits load_image_folder(const std::filesystem::path& directory,
                         const ImageFolderOptions& options = {});

/// The files of such a set's samples, in their order, below the part's folder; of another set none.
std::vector<std::string> picture_names(const Dataset& set);

/// All of a folder of identities to train on, and some of that as the test, which a note says: for
/// who measures on pairs of others. Throws DataError as above.
Splits load_identity_folder(const std::filesystem::path& directory,
                            const ImageFolderOptions& options = {});

}  // namespace ringlet::data
