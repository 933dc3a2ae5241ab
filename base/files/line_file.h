// A text file to which a run appends lines. A run that goes on keeps lines of the run before it.
// Each line is written with one call, so a run that is killed leaves at most a part of one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace ringlet {

/// Opens what is_stream() to be written into. A pipe needs a reader, which is waited for no longer
/// than it takes to start one. `what`: its name in messages. Throws FileError.
Descriptor open_stream(const std::filesystem::path& path, const std::string& what);

class LineFile {
 public:
  /// Whether a line of the former run stays.
  using Keep = std::function<bool(const std::string& line)>;

  /// Opens `path` and keeps those of its lines that `keep` wants; without `keep`, none. `what` is
  /// its name in messages, "--metrics m.jsonl". What is_stream() is written to as it is.
  /// Throws FileError.
  LineFile(std::filesystem::path path, std::string what, const Keep& keep);

  /// Whether the file is empty.
  bool empty() const { return empty_; }
  /// `text`: whole lines with their ends. Allocates nothing. Throws FileError.
  void append(std::string_view text);

 private:
  std::filesystem::path path_;
  std::string what_;
  Descriptor descriptor_;
  bool empty_ = true;
};

}  // namespace ringlet
