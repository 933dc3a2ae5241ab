// A text file that a run appends lines to: what a run that goes on keeps of the former one, and
// what comes then. A line is written with one call, so a run that is killed leaves at most a part
// of one.
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

  /// Opens `path`, of whose lines those that `keep` wants stay; without `keep`, none. `what` is its
  /// name in messages, "--metrics m.jsonl". A device or a named pipe is written to as it is.
  /// Throws FileError.
  LineFile(std::filesystem::path path, std::string what, const Keep& keep);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Whether nothing stands in it.
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
