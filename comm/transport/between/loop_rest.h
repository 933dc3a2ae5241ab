// LoopRest: lets the thread of an event loop sleep while other threads have its connections.
//
// Gloo moves data on a thread of its own. For each event it tries the lock of a connection; where a
// rank holds that, it goes back to epoll_wait(2), which returns at once with the same event. That
// is quick where both have a processor. Where the rank has been taken off the one that they share,
// the thread tries until its time is up, a tick of 1 to 10 ms. So a rank says when it begins and
// ends; in between the loop finds a descriptor to read, and sleeps.
//
// It sleeps in naps: a rank that finds its connection broken waits until the loop has turned.
#pragma once

#include <condition_variable>
#include <mutex>

namespace ringlet::comm {

class LoopRest {
 public:
  /// Throws std::system_error where the system has no descriptor left.
  LoopRest();
  ~LoopRest();
  LoopRest(const LoopRest&) = delete;
  LoopRest& operator=(const LoopRest&) = delete;

  /// Readable (level-triggered) while somebody is between begin() and end(), until the loop's
  /// thread has seen the end.
  int descriptor() const { return descriptor_; }
  /// What the loop's thread calls when the descriptor is readable. Returns at the last end(), or
  /// after a nap.
  void rest();

  // Any thread; calls may lie within each other, and beside each other's.
  void begin();
  void end();

 private:
  int descriptor_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int inside_ = 0;  // calls of begin() without an end()
};

/// begin() and end() around a block, of what is there.
class Resting {
 public:
  explicit Resting(LoopRest* loop) : loop_(loop) {
    if (loop_ != nullptr) loop_->begin();
  }
  ~Resting() {
    if (loop_ != nullptr) loop_->end();
  }
  Resting(const Resting&) = delete;
  Resting& operator=(const Resting&) = delete;

 private:
  LoopRest* loop_;
};

}  // namespace ringlet::comm
