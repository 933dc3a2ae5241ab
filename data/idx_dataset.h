// A data set from a directory with four IDX files in MNIST's naming:
//
//   train-images-idx3-ubyte    train-labels-idx1-ubyte
//   t10k-images-idx3-ubyte     t10k-labels-idx1-ubyte
//
// each with or without .gz, and with '.' instead of the '-' before idx as some tools unpack them;
// or in EMNIST's, "emnist-letters-train-images-idx3-ubyte" and "emnist-letters-test-...". The files
// may also lie where torchvision puts them: in raw, MNIST/raw, FashionMNIST/raw, ... below it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/idx.h"

namespace ringlet::data {

/// One split's files.
struct IdxPair {
  std::filesystem::path images;
  std::filesystem::path labels;
};

struct IdxFiles {
  IdxPair train;
  IdxPair test;
};

/// True when all four files of a set are in `directory`.
bool has_idx_files(const std::filesystem::path& directory);

/// Those of every set that is there, or below it as above.
std::vector<IdxFiles> all_idx_files(const std::filesystem::path& directory);

/// Finds the four files. Throws DataError that names every one that is missing, or the sets, where
/// there are several.
IdxFiles find_idx_files(const std::filesystem::path& directory);

/// Reads one file: read_idx, or a function that checks more.
using IdxRead = std::function<IdxArray(const std::filesystem::path& file, int dimensions)>;

/// Loads four files as a data set called `name`. Without `target_names` the classes are named by
/// number: ten of them, or more where the largest training label is above 9. Errors as below.
Splits load_idx_files(const IdxFiles& files, const std::string& name,
                      std::vector<std::string> target_names, const IdxRead& read,
                      bool allow_unseen_targets = false);

/// Loads a directory of IDX files as they are.
/// Throws DataError: what read_idx says, counts of images and labels that differ, labels outside
/// the classes, images of different size in train and test. Where the labels alone say how many
/// classes there are, also for a class below the largest training label that no training sample
/// has, unless `allow_unseen_targets`: a single damaged label would make 201 classes of ten.
Splits load_idx_directory(const std::filesystem::path& directory,
                          bool allow_unseen_targets = false);

}  // namespace ringlet::data
