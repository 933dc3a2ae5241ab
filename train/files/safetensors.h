// safetensors: the weights file that PyTorch's world reads (huggingface/safetensors).
//
//   u64 N, little-endian
//   N bytes of JSON, padded with spaces to a multiple of 8:
//     {"__metadata__": {"key": "text"},
//      "name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ...}
//   the tensors' bytes
//
// Tensors are row-major and little-endian. Sorted by offset they start at 0, touch, and end at the
// end of the file. The reader is strict about all of it. The writer puts wider types first and
// names in order, so the same tensors give the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/byte_sum.h"
#include "base/files/atomic_file.h"

namespace ringlet::train {

/// Name, type and shape of a tensor in a file. `dtype` is the format's word: "F32", "I64", ...
struct TensorSpec {
  std::string name;
  std::string dtype = "F32";
  std::vector<std::int64_t> shape;  ///< empty: a scalar
};

/// Bytes of one element of a dtype of the format; 0 for a word that it does not know.
std::int64_t safetensors_dtype_bytes(std::string_view dtype);

class SafetensorsStream;

/// A file in memory: read once, checked as a whole, then looked up by name.
class SafetensorsFile {
 public:
  /// Reads and checks. Throws FileError naming the file and what is wrong.
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// The same from an open stream (safetensors_stream.h); `path` is for messages.
  SafetensorsFile(SafetensorsStream stream, std::filesystem::path path);
  SafetensorsFile(const SafetensorsFile&) = delete;  // entries point into the storage
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  struct Entry {
    TensorSpec spec;
    std::span<const std::byte> bytes;  ///< inside this object
  };

  const std::filesystem::path& path() const { return path_; }
  /// Of all the file's bytes (byte_sum.h).
  const std::string& sum() const { return sum_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// In the order of their bytes in the file.
  const std::vector<Entry>& entries() const { return entries_; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Null where there is no such tensor.
  const Entry* find(std::string_view name) const;
  /// The values of an F32 tensor, row-major. Throws FileError for no such name or another dtype.
  std::span<const float> f32(std::string_view name) const;
  /// The values of an I64 tensor.
  std::span<const std::int64_t> i64(std::string_view name) const;

  /// The tensors of other names: "fc1.bias F32 [10]".
  std::vector<std::string> besides(std::span<const TensorSpec> expected) const;

  /// Compares names, dtypes and shapes with what is wanted. Throws one FileError that lists every
  /// missing, surplus, differently shaped and differently typed tensor. Surplus ones are allowed
  /// when `allow_surplus`.
  void match(std::span<const TensorSpec> expected, bool allow_surplus = false) const;

 private:
  const Entry& require(std::string_view name, std::string_view dtype) const;

  std::filesystem::path path_;
  std::string sum_;
  std::vector<std::uint64_t> storage_;  // the tensors' bytes, aligned to 8
  std::map<std::string, std::string> metadata_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

/// A file whose tensors come piece by piece, for what need not fit into memory. Written atomically
/// (atomic_file.h). Throws FileError.
class SafetensorsWriter {
 public:
  /// `tensors`: in the file's order, wider dtypes first, then by name.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorSpec> tensors,
                    const std::map<std::string, std::string>& metadata);
  /// The next bytes of the tensors, one behind the other.
  void write(const void* data, std::size_t bytes);
  /// Returns the file's sum (byte_sum.h).
  std::string commit();

 private:
  AtomicFile file_;
  ByteSum sum_;
};

/// A tensor to write; `data` holds product(shape) elements of spec.dtype, row-major.
struct TensorToWrite {
  TensorSpec spec;
  const void* data = nullptr;
};

/// Writes the file atomically (atomic_file.h). The bytes depend on the arguments only, not on the
/// tensors' order. Returns their sum (byte_sum.h). Throws FileError, also for a name that comes
/// twice or a dtype that is not known.
std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace ringlet::train
