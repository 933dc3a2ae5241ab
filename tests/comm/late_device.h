// LateDevice: a device that does nothing until somebody waits for it, and then does everything in
// the worst order that its events permit. It provokes what CUDA might do.
//
// Its memory is the host's. Its streams are queues of operations, which LateOperations fills
// instead of kernels. All devices of a test share one LateMachine, which runs the queues when a
// host thread waits. It may, for example, always run the same stream as far as events let it come.
// So a missing wait shows as wrong numbers, and shows every time.
//
// The devices' kind is `meta`, for which Ringlet's own kernels do nothing: an operation that does
// not go through LateOperations leaves its result out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/memory_operations.h"
#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// Which of the streams that could go on does. `seed` 0: the one that was made first; 1: the one
/// that was made last; others: a random order. Drawn anew for each operation if `restless`.
struct LateOrder {
  unsigned seed = 0;
  bool restless = false;
};

/// Any thread may call anything.
class LateMachine {
 public:
  struct EventState {
    std::uint64_t made = 0, reached = 0;  // records
  };

  explicit LateMachine(LateOrder order) : order_(order), generator_(order.seed) {}

  int add_stream() {
    const std::lock_guard lock(mutex_);
    queues_.emplace_back();
    return static_cast<int>(queues_.size()) - 1;
  }
  void launch(int stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queues_[static_cast<std::size_t>(stream)].push_back({std::move(work), nullptr, 0});
  }
  void record(int stream, std::shared_ptr<EventState> event) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t record = ++event->made;
    auto reach = [event = std::move(event), record] { event->reached = record; };
    queues_[static_cast<std::size_t>(stream)].push_back({std::move(reach), nullptr, 0});
  }
  void wait(int stream, std::shared_ptr<EventState> event) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t record = event->made;
    queues_[static_cast<std::size_t>(stream)].push_back({[] {}, std::move(event), record});
  }

  void finish(int stream) {
    run_until([this, stream] { return queues_[static_cast<std::size_t>(stream)].empty(); });
  }
  void finish(const EventState& event) {
    run_until([&event, record = event.made] { return event.reached >= record; });
  }

  void add_memory(const void* address, std::int64_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    memory_[static_cast<const std::byte*>(address)] = {bytes, device};
  }
  void remove_memory(const void* address) {
    const std::lock_guard lock(mutex_);
    memory_.erase(static_cast<const std::byte*>(address));
  }
  /// For operations while they run: whether the view lies in memory that is allocated and, if
  /// `device` is not negative, that device's. Notes a violation otherwise.
  bool check(const char* operation, const ConstView& view, int device) {
    const auto* begin = static_cast<const std::byte*>(view.data());
    auto block = memory_.upper_bound(begin);
    const bool held =
        block != memory_.begin() && begin + view.bytes() <= (--block)->first + block->second.bytes;
    const bool right = held && (device < 0 || block->second.device == device);
    if (!held) violation_ = std::string(operation) + " uses memory that was given back";
    if (held && !right) violation_ = std::string(operation) + " uses memory of another device";
    return right;
  }
  /// The latest violation; "" if there was none.
  std::string violation() const {
    const std::lock_guard lock(mutex_);
    return violation_;
  }

 private:
  struct Operation {
    std::function<void()> work;
    std::shared_ptr<EventState> awaited;  // or null
    std::uint64_t record;                 // of it
    bool can_run() const { return !awaited || awaited->reached >= record; }
  };
  struct Block {
    std::int64_t bytes;
    int device;
  };

  template <class Done>
  void run_until(Done done) {
    const std::lock_guard lock(mutex_);
    while (!done()) {
      auto& queue = queues_[next_stream()];
      Operation operation = std::move(queue.front());
      queue.pop_front();
      operation.work();
    }
  }
  std::size_t next_stream() {
    for (std::size_t i = ranking_.size(); i < queues_.size(); ++i) ranking_.push_back(i);
    if (order_.restless || ranked_ < queues_.size()) rank_streams();
    for (const std::size_t stream : ranking_) {
      if (!queues_[stream].empty() && queues_[stream].front().can_run()) return stream;
    }
    throw std::logic_error("the device hangs: its streams wait for each other");
  }
  void rank_streams() {
    std::sort(ranking_.begin(), ranking_.end());
    if (order_.seed == 1) std::reverse(ranking_.begin(), ranking_.end());
    if (order_.seed > 1) std::shuffle(ranking_.begin(), ranking_.end(), generator_);
    ranked_ = queues_.size();
  }

  LateOrder order_;
  std::mt19937 generator_;
  mutable std::mutex mutex_;
  std::vector<std::deque<Operation>> queues_;  // by stream
  std::vector<std::size_t> ranking_;           // of the streams
  std::size_t ranked_ = 0;                     // streams when ranking_ was made
  std::map<const std::byte*, Block> memory_;   // that is held, by its begin
  std::string violation_;
};

class LateEvent final : public Event {
 public:
  explicit LateEvent(LateMachine& machine) : machine_(machine) {}
  void synchronize() override { machine_.finish(*state_); }
  const std::shared_ptr<LateMachine::EventState>& state() const { return state_; }

 private:
  LateMachine& machine_;
  std::shared_ptr<LateMachine::EventState> state_ = std::make_shared<LateMachine::EventState>();
};

/// Runs host work in place, and launched work late.
class LateStream final : public Stream {
 public:
  LateStream(Device& device, const char* name, LateMachine& machine)
      : Stream(device, name), machine_(machine), index_(machine.add_stream()) {}
  ~LateStream() override {
    machine_.finish(index_);
    if (workspace_ != nullptr) device().deallocate(workspace_, workspace_bytes_);
  }

  LateMachine& machine() const { return machine_; }
  void do_late(std::function<void()> work) { machine_.launch(index_, std::move(work)); }

  bool in_order_with_host() const override { return false; }
  void* workspace(std::int64_t bytes) override {
    if (workspace_ == nullptr || bytes > workspace_bytes_) {
      machine_.finish(index_);
      if (workspace_ != nullptr) device().deallocate(workspace_, workspace_bytes_);
      workspace_ = device().allocate(bytes);
      workspace_bytes_ = bytes;
    }
    return workspace_;
  }
  void run(Task&& task) override { task(); }
  void record(Event& event) override {
    machine_.record(index_, static_cast<LateEvent&>(event).state());
  }
  void wait(Event& event) override {
    machine_.wait(index_, static_cast<LateEvent&>(event).state());
  }
  void synchronize() override { machine_.finish(index_); }

 private:
  LateMachine& machine_;
  int index_;
  void* workspace_ = nullptr;
  std::int64_t workspace_bytes_ = 0;
};

class LateDevice final : public Device {
 public:
  /// `reads_others`: whether it reads the memory of other devices in place.
  LateDevice(LateMachine& machine, int index, bool reads_others)
      : Device({DeviceKind::meta, index}),
        machine_(machine),
        reads_others_(reads_others),
        compute_(*this, "compute", machine),
        communication_(*this, "communication", machine) {}

  LateStream& compute() override { return compute_; }
  LateStream& communication() override { return communication_; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<LateEvent>(machine_); }
  bool reads_memory_of(DeviceId other) const override { return reads_others_ || other == id(); }

 protected:
  void* do_allocate(std::int64_t bytes) override {
    void* address = ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
    machine_.add_memory(address, bytes, id().index);
    return address;
  }
  void do_deallocate(void* address, std::int64_t) noexcept override {
    machine_.remove_memory(address);
    ::operator delete(address);
  }

 private:
  LateMachine& machine_;
  bool reads_others_;
  LateStream compute_, communication_;
};

/// The operations that a transport launches, on late streams.
class LateOperations final : public MemoryOperations {
 public:
  void copy(Stream& stream, ConstView x, View y) const override {
    launch("copy", stream, x, y, reach_of(stream), &copy_bytes);
  }
  void copy_from(Stream& stream, DeviceId from, ConstView x, View y) const override {
    launch("copy_from", stream, x, y, from.index, &copy_bytes);
  }
  /// f32, and what a test of collectives asks for: sums.
  void reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
              const ReduceOptions&) const override {
    if (op != ReduceOp::sum) throw std::logic_error("late devices only add");
    auto& late = static_cast<LateStream&>(stream);
    late.do_late([xs = std::vector(xs.begin(), xs.end()), ys = std::vector(ys.begin(), ys.end()),
                  reach = reach_of(stream), machine = &late.machine()] {
      const auto held = [&](const ConstView& view) {
        return machine->check("reduce", view, reach);
      };
      if (std::all_of(xs.begin(), xs.end(), held) && std::all_of(ys.begin(), ys.end(), held)) {
        add_floats(xs, ys);
      }
    });
  }

 private:
  using Function = void (*)(const ConstView& x, const View& y);

  static void copy_bytes(const ConstView& x, const View& y) {
    if (x.bytes() > 0) std::memcpy(y.data(), x.data(), static_cast<std::size_t>(x.bytes()));
  }
  static void add_floats(const std::vector<ConstView>& xs, const std::vector<View>& ys) {
    for (std::int64_t i = 0; i < ys[0].count(); ++i) {
      float sum = xs[0].f32()[i];
      for (std::size_t k = 1; k < xs.size(); ++k) sum += xs[k].f32()[i];
      for (const View& y : ys) y.f32()[i] = sum;
    }
  }
  /// The device whose memory a kernel may read; -1: any.
  static int reach_of(const Stream& stream) {
    const Device& device = stream.device();
    const DeviceId other{DeviceKind::meta, device.id().index + 1};
    return device.reads_memory_of(other) ? -1 : device.id().index;
  }
  static void launch(const char* name, Stream& stream, const ConstView& x, const View& y, int reach,
                     Function function) {
    auto& late = static_cast<LateStream&>(stream);
    late.do_late(
        [name, x, y, reach, function, own = stream.device().id().index, machine = &late.machine()] {
          if (machine->check(name, x, reach) && machine->check(name, y, own)) function(x, y);
        });
  }
};

}  // namespace ringlet::comm
