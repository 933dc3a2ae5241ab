// AsyncDevice: a device whose streams run behind the host, each on a thread of its own, as a GPU's
// do: what is launched on one may wait, for ever if need be, and the host does not wait with it.
//
// Its memory is the host's. Its kind is `meta`, for which Ringlet's own kernels do nothing; what a
// transport launches goes through AsyncOperations. LateDevice (late_device.h) is the other one for
// such tests: it does all in the worst order, and cannot wait for anything from outside.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "comm/transport/memory_operations.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "tests/comm/nccl_stand_in.h"

namespace ringlet::comm {

class AsyncEvent final : public Event {
 public:
  void synchronize() override { state_->wait(state_->made()); }
  bool reached() override { return state_->is_reached(state_->made()); }

  /// Records of an event; streams hold it too.
  class State {
   public:
    std::uint64_t made() const {
      const std::lock_guard lock(mutex_);
      return made_;
    }
    std::uint64_t make() {
      const std::lock_guard lock(mutex_);
      return ++made_;
    }
    void reach(std::uint64_t record) {
      const std::lock_guard lock(mutex_);
      reached_ = std::max(reached_, record);
      changed_.notify_all();
    }
    bool is_reached(std::uint64_t record) const {
      const std::lock_guard lock(mutex_);
      return reached_ >= record;
    }
    void wait(std::uint64_t record) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return reached_ >= record; });
    }

   private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t made_ = 0, reached_ = 0;
  };
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// What was launched while its stream was captured.
class AsyncGraph final : public Graph, public std::vector<std::function<void()>> {};

class AsyncStream final : public Stream, public StandInStream {
 public:
  AsyncStream(Device& device, const char* name)
      : Stream(device, name), thread_([this] { work_off(); }) {}
  ~AsyncStream() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void launch(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    if (captured_) {
      captured_->push_back(std::move(work));
      return;
    }
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  /// CUDA does not let a stream be asked that is captured: it ends the capture.
  bool is_busy() {
    const std::lock_guard lock(mutex_);
    if (captured_) capture_broken_ = true;
    return !queue_.empty();
  }

  bool is_captured() const override {
    const std::lock_guard lock(mutex_);
    return captured_ != nullptr;
  }
  bool can_capture() const override { return true; }
  void begin_capture() override {
    const std::lock_guard lock(mutex_);
    captured_ = std::make_unique<AsyncGraph>();
    capture_broken_ = false;
  }
  std::unique_ptr<Graph> end_capture() override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<AsyncGraph> captured = std::move(captured_);
    if (capture_broken_) throw std::logic_error("the capture was broken");
    return captured;
  }
  void launch(Graph& graph) override {
    for (const auto& work : static_cast<AsyncGraph&>(graph)) launch(work);
  }

  bool in_order_with_host() const override { return false; }
  void* workspace(std::int64_t bytes) override {
    if (workspaces_.empty() || bytes > workspaces_.back().bytes()) {
      workspaces_.emplace_back(device(), bytes);
    }
    return workspaces_.back().data();
  }
  void run(Task&& task) override { task(); }
  void record(Event& event) override {
    auto state = static_cast<AsyncEvent&>(event).state();
    launch([state, record = state->make()] { state->reach(record); });
  }
  void wait(Event& event) override {
    auto state = static_cast<AsyncEvent&>(event).state();
    launch([state, record = state->made()] { state->wait(record); });
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty(); });
  }
  void flush() override {}

 private:
  void work_off() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto& work = queue_.front();  // stays there while it runs: the stream is busy
      lock.unlock();
      work();
      lock.lock();
      queue_.pop_front();
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::unique_ptr<AsyncGraph> captured_;
  bool capture_broken_ = false;
  bool ends_ = false;
  std::vector<Buffer> workspaces_;  // the last one is in use
  std::thread thread_;              // the last member: it uses the others
};

class AsyncDevice final : public Device {
 public:
  explicit AsyncDevice(int index)
      : Device({DeviceKind::meta, index}),
        compute_(*this, "compute"),
        communication_(*this, "communication") {}

  AsyncStream& compute() override { return compute_; }
  AsyncStream& communication() override { return communication_; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<AsyncEvent>(); }

 protected:
  void* do_allocate(std::int64_t bytes) override {
    return ::operator new (static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)),
                           std::align_val_t{256});
  }
  /// A GPU's memory is not free before its streams are done with it. Here that may take until an
  /// abort that comes after this, so it is kept as long as they run.
  void do_deallocate(void* address, std::int64_t) noexcept override {
    const std::lock_guard lock(mutex_);
    returned_.emplace_back(address);
  }

 private:
  struct Free {
    void operator()(void* address) const { ::operator delete (address, std::align_val_t{256}); }
  };

  std::mutex mutex_;
  std::vector<std::unique_ptr<void, Free>> returned_;
  AsyncStream compute_, communication_;  // the last members: they end before their memory does
};

/// What a transport launches, on such streams. f32, and sums.
class AsyncOperations final : public MemoryOperations {
 public:
  void reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
              const ReduceOptions&) const override {
    if (op != ReduceOp::sum) throw std::logic_error("such devices only add");
    static_cast<AsyncStream&>(stream).launch(
        [xs = std::vector(xs.begin(), xs.end()), ys = std::vector(ys.begin(), ys.end())] {
          for (std::int64_t i = 0; i < ys[0].count(); ++i) {
            float sum = xs[0].f32()[i];
            for (std::size_t k = 1; k < xs.size(); ++k) sum += xs[k].f32()[i];
            for (const View& y : ys) y.f32()[i] = sum;
          }
        });
  }
};

}  // namespace ringlet::comm
