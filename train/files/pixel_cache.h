// --cache: the samples of both halves of a data set, read once (data/cached_dataset.h), in memory,
// or also in files, which the next run reads instead.
//
//   FILE.train, FILE.test:   "ringlet pixels 1"                 16 bytes
//                            hash of the data, samples,         64 bits each
//                            bytes of a sample, hash of all
//                            samples' bytes
//                            the samples, [N, C, H, W]
//
// A file of other data, of another image size, cut short or damaged is told in Splits::notes and
// made again: written aside, synced, renamed. What is no such file is not touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace ringlet::train {

/// `cache`: "memory" or FILE. Sets that are in memory stay as they are. `threads`: that read.
/// Throws FileError for a file that is something else or cannot be written, and what read_all()
/// throws.
data::Splits with_cache(data::Splits splits, const std::string& cache, int threads);

/// The pixels of `set` in `file`. Nothing where the file cannot be taken; `defect` then says why.
/// Throws FileError as above.
std::optional<std::vector<std::uint8_t>> read_pixel_cache(const std::filesystem::path& file,
                                                          const data::Dataset& set,
                                                          std::string& defect);

}  // namespace ringlet::train
