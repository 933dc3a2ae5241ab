#include "data/images/decode_share.h"

#include <condition_variable>
#include <mutex>

#include "base/data_error.h"
#include "base/memory_limits.h"

namespace ringlet::data {

namespace {

/// What all threads together have.
class Shares {
 public:
  void take(std::uint64_t bytes, const std::string& name, std::uint64_t free) {
    std::unique_lock lock(mutex_);
    if (together_ == 0) together_ = memory_limits().free / 2;
    given_back_.wait(lock, [&] { return taken_ == 0 || taken_ + bytes <= together_; });
    if (taken_ == 0) {
      if (free == 0) free = memory_limits().free;
      if (bytes > free) {
        throw DataError(name + ": the image takes " + std::to_string(bytes >> 20) +
                        " MiB to decode, and " + std::to_string(free >> 20) +
                        " MiB of memory are free; make it smaller");
      }
    }
    taken_ += bytes;
  }

  void give_back(std::uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      taken_ -= bytes;
    }
    given_back_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::uint64_t together_ = 0, taken_ = 0;
};

Shares& shares() {
  static Shares shares;
  return shares;
}

}  // namespace

DecodeShare::DecodeShare(std::uint64_t bytes, const std::string& name, std::uint64_t free) {
  if (bytes <= kDecodedFreely) return;
  shares().take(bytes, name, free);
  bytes_ = bytes;
}

DecodeShare::~DecodeShare() {
  if (bytes_ > 0) shares().give_back(bytes_);
}

}  // namespace ringlet::data
