// --cache: the samples of both halves of a data set, read once (data/cached_dataset.h), in memory,
// or also in files, which the next run reads instead.
//
//   FILE.train, FILE.test:   "ringlet pixels 2"                 16 bytes
//                            hash of the data, samples,         64 bits each
//                            bytes of a sample, hash of all
//                            samples' bytes
//                            the samples, [N, C, H, W]
//
// Of a set that keeps larger pictures (Dataset::keep), the bytes of a sample are 0, and before the
// samples stand N times 64 bits: the bytes of each.
//
// A file of other data, of another image size, of a version that told data apart by less, cut short
// or damaged is told in Splits::notes and made again: written aside, synced, renamed. What is no
// such file is not touched.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/kept_samples.h"

namespace ringlet::train {

/// `cache`: "memory" or FILE. Sets that are in memory stay as they are. `threads`: that read.
/// Throws FileError for a file that is something else or cannot be written, and what keep_all()
/// throws.
data::Splits with_cache(data::Splits splits, const std::string& cache, int threads);

/// What `file` keeps of `set`. Null where the file cannot be taken; `defect` then says why.
/// Throws FileError as above.
std::shared_ptr<const data::KeptSamples> read_pixel_cache(const std::filesystem::path& file,
                                                          const data::Dataset& set,
                                                          std::string& defect);

}  // namespace ringlet::train
