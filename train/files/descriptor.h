// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace ringlet::train::posix {

class Descriptor {
 public:
  Descriptor() = default;
  /// Owns it; a negative one is none.
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { (void)close(); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }
  /// What close(2) returns; 0 where there is nothing to close.
  int close() { return *this ? ::close(std::exchange(value_, -1)) : 0; }

 private:
  int value_ = -1;
};

}  // namespace ringlet::train::posix
