// Descriptor: an open file, closed where its owner does not pass it on.
#pragma once

#include <unistd.h>

#include <utility>

namespace ringlet {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { (void)close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  bool open() const { return number_ >= 0; }
  int get() const { return number_; }
  /// What close(2) returns, which tells of a write that failed late; 0 where nothing is open.
  int close() { return open() ? ::close(std::exchange(number_, -1)) : 0; }
  /// Passes it on: closing it is the caller's from here on.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace ringlet
