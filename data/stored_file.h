// StoredFile: a regular file, open to be read at any place. Nothing is shared between two reads
// (pread), so any number of threads read one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace ringlet::data {

class StoredFile {
 public:
  /// Throws DataError for what is no regular file, or cannot be opened.
  explicit StoredFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return bytes_; }
  /// When its content was changed last: nanoseconds since 1970.
  std::int64_t modified() const { return modified_; }

  /// Fills `bytes` with what stands from `from` on. Throws DataError where that cannot be read.
  void read(std::uint64_t from, std::span<std::uint8_t> bytes) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;
  std::int64_t modified_ = 0;
};

}  // namespace ringlet::data
