// A safetensors file that is read from its beginning to its end: the header at once, checked as a
// whole, then the tensors' bytes in pieces of any size. For files that need not fit into memory.
// A file of torch.save() is read as if it were one (torch_archive.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>

#include "base/byte_sum.h"
#include "train/files/safetensors_header.h"

namespace ringlet::train {

class TorchArchive;

class SafetensorsStream {
 public:
  /// Opens a file, reads and checks its header. Throws FileError naming it and what is wrong.
  explicit SafetensorsStream(const std::filesystem::path& path);
  /// The same for any stream of `bytes` bytes; `name` is for messages.
  SafetensorsStream(std::unique_ptr<std::istream> stream, std::uint64_t bytes, std::string name);
  SafetensorsStream(SafetensorsStream&&) noexcept;
  ~SafetensorsStream();

  const SafetensorsHeader& header() const { return header_; }
  SafetensorsHeader& header() { return header_; }
  /// The next `bytes` bytes of the tensors, which follow each other in the header's order.
  void read(void* destination, std::uint64_t bytes);
  /// Reads what is left, and sums up the whole file (byte_sum.h). To be called once, last.
  std::string sum();

 private:
  std::string first_bytes_of_file();
  void refuse_foreign(const std::string& head) const;
  void read_header();
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  std::unique_ptr<std::istream> stream_;
  std::unique_ptr<TorchArchive> torch_;  // has the stream then
  std::uint64_t remaining_ = 0;
  ByteSum sum_;
  SafetensorsHeader header_;
};

}  // namespace ringlet::train
