// --embeddings: what a model answers, as an array that numpy.load() reads: f32 [N, D].
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/files/atomic_file.h"

namespace ringlet::app {

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
