// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017; MIT licence): 60,000 + 10,000 grey images of
// clothes, 28 x 28, ten classes.
//
// Looked for, in this order:
//   1. the directory that the caller names (--data-dir)
//   2. the directory that the environment variable RINGLET_DATA names
//   3. share/datasets/fashion-mnist under /usr/local and /usr: Debian's dataset-fashion-mnist
//   4. ~/.cache/ringlet/fashion-mnist: where scripts/setup puts upstream's download
// In a named directory (1, 2), also where torchvision puts it: FashionMNIST/raw. If it lacks the
// files, that is an error; the search does not go on.
//
// The raw bytes are checked against their published SHA-256 sums. A download that went wrong in the
// middle of an image would otherwise show only as a slightly worse accuracy.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace ringlet::data {

inline constexpr const char* kFashionMnistName = "fashion-mnist";  ///< as --data names it

/// Of the training images.
inline constexpr PixelStatistics kFashionMnistPixels{0.286041, 0.353024};

/// The ten class names, in the order of the labels.
const std::vector<std::string>& fashion_mnist_classes();

/// Where an installed set is looked for: 3 and 4 above.
std::vector<std::filesystem::path> fashion_mnist_directories();

/// Where the files are. `directory` may be empty. Throws DataError that says where it looked and
/// what to do: the package, --data-dir, or --data synthetic.
std::filesystem::path find_fashion_mnist(
    const std::filesystem::path& directory,
    const std::vector<std::filesystem::path>& directories = fashion_mnist_directories());

/// Finds, reads and checks the set. Throws DataError as above, as read_idx, or for a wrong sum.
Splits load_fashion_mnist(const std::filesystem::path& directory = {});

}  // namespace ringlet::data
