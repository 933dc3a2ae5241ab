// CallGate: counts the threads inside a library, so that it is torn down only when all have left.
//
// NCCL asks that no thread of the process is in one of its calls when communicators are aborted. So
// every call is made inside a Pass. Whoever aborts closes the gate first: that lets no thread in
// any more, and returns when the last one has come out.
#pragma once

#include <condition_variable>
#include <mutex>

namespace ringlet::comm {

/// Shared by the threads of a process. Any thread may call anything.
class CallGate {
 public:
  /// A stay inside, from construction to destruction, unless the gate was closed.
  class Pass {
   public:
    explicit Pass(CallGate& gate) : gate_(gate), inside_(gate.enter()) {}
    ~Pass() {
      if (inside_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    /// False: the gate is closed, the call must not be made.
    explicit operator bool() const { return inside_; }

   private:
    CallGate& gate_;
    bool inside_;
  };

  /// Must not be called inside a Pass: it would wait for itself.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  bool enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      --inside_;
    }
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  int inside_ = 0;
  bool closed_ = false;
};

}  // namespace ringlet::comm
