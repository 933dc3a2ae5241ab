// Runs a block of a kernel: all its threads side by side, an instruction for all that are at it.
//
// Threads part at branches. Those that are furthest behind go on first, so they meet the others
// again. What a GPU leaves unsaid is a Fault here: an access outside of memory that was allocated,
// or not aligned; shared memory that nobody wrote; two threads at the same byte of it with no
// barrier between and one of them writing; a barrier that not all threads come to; memory that is
// touched before the kernel waited for the one before it. A copy to shared memory that runs by
// itself (cp.async) is there once its thread has waited for it. Until then nobody may touch where
// it goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/ptx/program.h"

namespace ringlet::ptx {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Memory that kernels may touch, [begin, end). None: begin == end.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool holds(std::uintptr_t at, std::uintptr_t bytes) const {
    return at >= begin && at < end && bytes <= end - at;
  }
};
/// The allocation that holds the address; else the one before it, or none.
using RangeOf = std::function<Range(std::uintptr_t address)>;

class Block {
 public:
  /// `shared_bytes`: where the launch says how many there are.
  Block(const Program& program, int threads, int shared_bytes, RangeOf range_of);

  void run(std::uint32_t block, std::uint32_t blocks, const std::vector<std::byte>& parameters);

  // For handlers.
  template <class T>
  T* row(Row row) {
    return reinterpret_cast<T*>(rows_.data() + std::int64_t{row.before} * threads_);
  }
  template <class F>
  void each(F f) const {
    if (active_.size() == static_cast<std::size_t>(threads_)) {
      for (int k = 0; k < threads_; ++k) f(k);
    } else {
      for (const int k : active_) f(k);
    }
  }
  const std::byte* parameters() const { return parameters_->data(); }
  /// Where the thread's bytes lie. Throws Fault.
  std::byte* global(std::uint64_t address, int bytes, int thread, const char* what);
  std::byte* shared(std::uint64_t address, int bytes, int thread, bool writes);
  /// Sixteen bytes to come, from null: zeros.
  void copy_later(std::uint64_t address, const std::byte* from, int thread);
  void end_copies(int thread);              ///< what was asked for so far is a group
  void await_copies(int thread, int left);  ///< all groups but the latest `left`
  /// Calls f(first thread) for each warp. They have to be whole.
  template <class F>
  void each_warp(F f) const {
    if (active_.size() != static_cast<std::size_t>(threads_) || threads_ % kWarp != 0) {
      fail("a warp's instruction is not come to by all threads");
    }
    for (int k = 0; k < threads_; k += kWarp) f(k);
  }
  static constexpr int kWarp = 32;
  static constexpr int kAnyOfWarp = -2;  ///< thread that reads for others: none of them wrote it
  std::int64_t parameter(std::uint64_t offset, int bytes) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct Touch {
    std::uint32_t written = 0, read = 0;  // in which period between barriers
    std::int16_t writer = 0, reader = 0;  // reader kMany: more than one
    bool coming = false;                  // by a copy that was not waited for
  };
  static constexpr std::int16_t kMany = -1;

  struct Copy {
    std::uint64_t address;
    std::array<std::byte, 16> bytes;
  };

  void mark(std::uint64_t address, int bytes, bool coming);
  bool choose();
  void park(int pc);
  int branch(const Instruction& at);
  void arrive();
  void pass_barrier();

  const Program& program_;
  int threads_;
  RangeOf range_of_;
  std::vector<std::byte> rows_;
  std::vector<int> pc_;  // by thread, of those that are not active; kEnded
  std::vector<bool> at_barrier_;
  std::vector<int> active_;
  int at_ = 0;    // pc of the active ones
  int next_ = 0;  // least pc of the others that can go on
  int ended_ = 0;
  bool waited_ = false;
  std::uint32_t block_ = 0;
  std::uint32_t period_ = 0, first_period_ = 0;
  std::vector<std::byte> shared_;
  std::vector<Touch> touches_;
  std::vector<std::vector<Copy>> asked_;               // by thread, in no group yet
  std::vector<std::deque<std::vector<Copy>>> groups_;  // by thread
  const std::vector<std::byte>* parameters_ = nullptr;
  Range range_{};  // of the latest access
};

}  // namespace ringlet::ptx
