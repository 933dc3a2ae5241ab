// --embeddings: what a model answers, as an array that numpy.load() reads: f32 [N, D], and beside
// it the names of the pictures, a line a row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"

namespace ringlet::app {

/// Where the names of FILE.npy's rows are: FILE.txt.
std::filesystem::path names_file_of(const std::filesystem::path& embeddings);

/// Writes them, each on one line (base/one_line.h). Throws FileError.
void write_names(const std::filesystem::path& embeddings, const std::vector<std::string>& names);

class EmbeddingsFile {
 public:
  /// For so many rows. Throws FileError, as the others do.
  EmbeddingsFile(const std::filesystem::path& out, std::int64_t rows, std::int64_t columns);
  /// The next rows.
  void write(std::span<const float> rows) { file_.write(rows.data(), rows.size_bytes()); }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

}  // namespace ringlet::app
