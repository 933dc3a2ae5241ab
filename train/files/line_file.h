// A text file to which a run appends lines. A run that goes on keeps lines of the run before it.
// Each line is written with one call, so a run that is killed leaves at most a part of one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace ringlet::train {

class LineFile {
 public:
  /// Whether a line of the former run stays.
  using Keep = std::function<bool(const std::string& line)>;

  /// Opens `path` and keeps those of its lines that `keep` wants; without `keep`, none. `what` is
  /// its name in messages, "--metrics m.jsonl". What is_stream() is written to as it is.
  /// Throws FileError.
  LineFile(std::filesystem::path path, std::string what, const Keep& keep);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Whether the file is empty.
  bool empty() const { return empty_; }
  /// `text`: whole lines with their ends. Allocates nothing. Throws FileError.
  void append(std::string_view text);

 private:
  std::filesystem::path path_;
  std::string what_;
  int descriptor_ = -1;
  bool empty_ = true;
};

}  // namespace ringlet::train
