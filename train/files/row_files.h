// A matrix that is too large for one process, as a folder of files: each has some of its rows, and
// what the optimiser keeps of them, and was written by the rank that had them.
//
//   centres/
//     index.safetensors          no tensor; its metadata are of the whole (centres.h), and say
//                                the matrix' rows, "ringlet.rows"
//     0001-of-0004.safetensors   `weight` [rows, D], and one tensor of each arena: "velocity"
//                                [rows, D], or "exp_avg", "exp_avg_sq" and "steps" [rows]. The
//                                metadata say the first row, "ringlet.first_row"
//
// Any number of ranks reads them, each its own range of rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/files/safetensors_stream.h"

namespace ringlet::train {

inline constexpr const char* kIndexFile = "index.safetensors";
inline constexpr const char* kFirstRow = "ringlet.first_row";  ///< in metadata
inline constexpr const char* kAllRows = "ringlet.rows";        ///< the same, of the index
inline constexpr const char* kWeightTensor = "weight";

/// "0001-of-0004.safetensors": the file of the first of four ranks, whose index is 0.
std::string row_file_name(int index, int count);

class RowFiles {
 public:
  /// Reads all headers. Throws FileError where the folder is not there, a file is missing, or the
  /// rows are not [0, rows()), each once.
  explicit RowFiles(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }

  /// Throws FileError unless each file has these tensors, those of `one_number` with one number a
  /// row and the others with `columns` of them.
  void match(std::int64_t rows, std::int64_t columns, const std::vector<std::string>& tensors,
             const std::vector<std::string>& one_number) const;
  /// Copies rows [begin, end) of `tensor`. Throws FileError.
  void read(const std::string& tensor, std::int64_t begin, std::int64_t end,
            float* destination) const;
  /// `weight`, whole. Throws FileError.
  std::vector<float> weights() const;

 private:
  struct File {
    std::filesystem::path path;
    std::uint64_t data = 0;  // where the tensors begin in the file
    std::int64_t first = 0, rows = 0;
    std::vector<StoredTensor> tensors;
  };
  static File open(const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::map<std::string, std::string> metadata_;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<File> files_;  // by their first rows
};

}  // namespace ringlet::train
