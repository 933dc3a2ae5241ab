// CIFAR-10 (Krizhevsky, 2009): 50,000 + 10,000 photographs, 32 x 32, RGB, ten classes; from the
// official binary version's files, in a directory or in its folder cifar-10-batches-bin:
//
//   data_batch_1.bin ... data_batch_5.bin, test_batch.bin
//
// each 10,000 records of a label's byte and 3072 bytes of pixels [3, 32, 32].
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/dataset.h"

namespace ringlet::data {

inline constexpr const char* kCifar10Name = "cifar-10";  ///< as --data names it

/// Throws DataError that names every file that is missing, and the first that is cut off, too long
/// or has a label above 9; and where `directory` is empty. `records`: of each file.
Splits load_cifar10(const std::filesystem::path& directory, std::int64_t records = 10'000);

}  // namespace ringlet::data
