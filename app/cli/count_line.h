// A line on a terminal that counts what is done: "1,250 of 5,000 images". It renews itself, and
// goes when the work has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ringlet::app {

/// Whether `descriptor` is a terminal that can overwrite its last line.
bool can_renew_lines(int descriptor);

class CountLine {
 public:
  /// Counts `total` of `what` on standard error. Shows nothing where that is no such terminal, or
  /// where `wanted` is false.
  CountLine(std::int64_t total, std::string what, bool wanted = true);
  ~CountLine() { clear(); }
  CountLine(const CountLine&) = delete;
  CountLine& operator=(const CountLine&) = delete;

  /// Renews the line, ten times a second at most.
  void show(std::int64_t done);
  /// Takes it away, so that something else may be printed.
  void clear();

 private:
  std::int64_t total_;
  std::string what_;
  bool wanted_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace ringlet::app
