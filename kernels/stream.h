// Stream: an ordered queue of work on a device, and Event: a point in it that others can wait for.
//
// Every device has two streams. `compute` runs the replica's forward and backward; on the CPU it
// runs in place, on the thread that calls. `communication` runs collectives while backward goes on;
// it has a host thread of its own (or runs in place, where overlap cannot pay).
//
// Kernels take the stream that they run on. Host work (a whole collective, say) is handed over with
// run(). Inside such a task the kernels of the same stream may be called directly. Calls of its own
// stream (run, record, wait) take effect at once, at that point of the task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/trace.h"

namespace ringlet {

class Device;

/// What an operation costs at least; counted by the shape-only dry run and shown beside timings.
struct Work {
  const char* operation = "";
  double flops = 0;  ///< additions and multiplications, a fused multiply-add counts as two
  double bytes = 0;  ///< bytes that must be read and written at least once
};

/// Cost of all operations of a dry run.
struct WorkTotals {
  double flops = 0;
  double bytes = 0;
  std::int64_t operations = 0;
};

/// A small callable stored in place, so that handing work to a stream allocates nothing. The
/// callable must be trivially copyable (capture pointers, references and numbers) and at most
/// 64 bytes; whatever it points to must live until the stream has run it.
class Task {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Task>)
      Task(F callable) {  // NOLINT: a lambda is handed over as it is
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= kBytes);
    new (storage_) F(callable);
    call_ = [](void* storage) { (*static_cast<F*>(storage))(); };
  }
  Task() = default;
  void operator()() { call_(storage_); }

 private:
  static constexpr std::size_t kBytes = 64;
  alignas(std::max_align_t) std::byte storage_[kBytes];
  void (*call_)(void*) = nullptr;
};

/// A point in a stream. Made by Device::make_event().
class Event {
 public:
  Event() = default;
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Blocks the host until the last record() made before this call is reached; an event that was
  /// never recorded is not waited for.
  virtual void synchronize() {}
  /// Whether synchronize() would return at once.
  virtual bool reached() { return true; }
};

/// The work of a stream between begin_capture() and end_capture(), which one call can repeat as
/// often as wished. It reads and writes the same memory each time.
class Graph {
 public:
  Graph() = default;
  virtual ~Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

class Stream {
 public:
  Stream(Device& device, const char* name) : device_(device), name_(name) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  const char* name() const { return name_; }  ///< "compute" or "communication"

  /// Runs `task` on the stream's host thread after everything handed over before. Where the stream
  /// runs in place, the call returns when the task has run, and throws what the task throws.
  virtual void run(Task&& task) = 0;

  /// `event` is reached when everything handed to this stream so far has run.
  virtual void record(Event& event) = 0;

  /// Work handed over after this call starts after the last record() of `event` that was made
  /// before this call. An event that was never recorded is not waited for. A stream that runs in
  /// place blocks the caller.
  virtual void wait(Event& event) = 0;

  /// Whether a kernel has run when its call returns, on memory of the host. CUDA's streams run
  /// behind the host instead: only record() and wait() order what they do.
  virtual bool in_order_with_host() const { return true; }

  /// Scratch memory on the device of at least `bytes`. It is kept until the stream ends and grows
  /// when more is asked for, which invalidates earlier addresses. The operations of a stream run
  /// one after another and share it: each takes it, uses it, and forgets it.
  virtual void* workspace(std::int64_t bytes) = 0;

  /// Blocks the host until the stream is idle, and throws the first error of its tasks. Not for use
  /// inside the stream's own tasks.
  /// After an error the tasks that follow are dropped (their events are reached all the same,
  /// so nobody hangs) until synchronize() has thrown it.
  virtual void synchronize() = 0;
  /// Blocks the host until what was handed over is launched, and throws as synchronize() does.
  /// Streams that run behind the host need not be idle then; for all others this is synchronize().
  virtual void flush() { synchronize(); }

  /// Whether work can be captured into graphs: on CUDA's compute streams.
  virtual bool can_capture() const { return false; }
  /// From here to end_capture() the stream's kernels are recorded and not run. Nothing may be
  /// allocated or waited for in between. Throws DeviceError where it cannot capture.
  virtual void begin_capture();
  virtual std::unique_ptr<Graph> end_capture();
  /// Runs what was captured, after everything handed over before.
  virtual void launch(Graph& graph);

  Tracer* tracer() const { return tracer_; }
  void set_tracer(Tracer* tracer) { tracer_ = tracer; }

  /// Where dispatch() adds up the cost of the operations, or null.
  WorkTotals* totals() const { return totals_; }
  void set_totals(WorkTotals* totals) { totals_ = totals; }

  /// Where the stream adds a line for people for each graph that it captures, and for each engine
  /// that a library has chosen for it; or null.
  std::vector<std::string>* notes() const { return notes_; }
  void set_notes(std::vector<std::string>* notes) { notes_ = notes; }

 private:
  Device& device_;
  const char* name_;
  Tracer* tracer_ = nullptr;
  WorkTotals* totals_ = nullptr;
  std::vector<std::string>* notes_ = nullptr;
};

}  // namespace ringlet
