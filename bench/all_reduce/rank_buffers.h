// RankBuffers: one rank's memory for the calls of one size, and what checks it.
//
//              natural place (collective.h)   the call's input        copied first, within the time
//   in place   in_place, either               where the result is     nothing
//              apart                          a buffer of its own     the result's place to it
//   apart      in_place                       where the result is     the input that is kept
//              apart, either                  the input that is kept  nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/all_reduce/collective_call.h"
#include "bench/all_reduce/test_pattern.h"
#include "comm/communicator.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/tensor.h"

namespace ringlet::bench {

class RankBuffers {
 public:
  /// What all ranks have alike.
  struct Work {
    CollectiveCall call;
    DType type = DType::f32;
    bool in_place = true;
    std::int64_t bytes = 0;  ///< the size
  };

  /// `ranks`: those that call it together. Collective over `world` where memory is shared.
  RankBuffers(const Work& work, Device& device, const comm::Communicator& world,
              const comm::Transport& ranks);

  const Work& work() const { return work_; }
  const View& result() const { return whole_; }
  /// What the collective reads, where that is not the result.
  const ConstView& input() const { return called_with_; }
  std::int64_t bytes() const { return whole_.bytes(); }

  void write_input(std::int64_t iteration);
  /// Puts the input where the collective reads it, if it lies elsewhere.
  void copy_input();
  /// Reads all that this rank has of the result, where the host can.
  void read_result();
  std::int64_t count_wrong(std::int64_t iteration);
  /// Of what this rank has of the result.
  std::uint64_t hash();

 private:
  View find_owned() const;
  ConstView result_on_host();

  Stream& stream_;
  Work work_;
  int rank_, ranks_;
  TestPattern pattern_;
  Tensor result_;
  View whole_ = result_;             // the result: made once, since handing it over is timed
  Tensor other_{};                   // the kept input, or what is called with in its stead
  View written_{};                   // where the input is before the call
  ConstView called_with_{};          // what the call reads
  View copied_to_{};                 // absent: nothing is copied
  View owned_{};                     // what this rank has of it after the call; the same
  std::vector<std::byte> on_host_;   // of memory that the host cannot reach
  volatile std::uint64_t kept_ = 0;  // so that the result is read
};

}  // namespace ringlet::bench
