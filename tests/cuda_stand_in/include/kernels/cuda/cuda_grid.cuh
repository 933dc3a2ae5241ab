// Instead of kernels/cuda/cuda_grid.cuh: launches put the grid on the stand-in's stream, where
// its threads run on the host in a shuffled order.
#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/host_grid.h"

namespace ringlet::impl {

inline KernelCode code_of_kernels() {
  const int version = stand_in::ptx_version();
  return {version == 0 ? cudaErrorNoKernelImageForDevice : cudaSuccess, version >= 90};
}

class CudaGrid {
 public:
  explicit CudaGrid(CudaStream& stream) : stream_(stream) {}

  using Adder = test::HostGrid::Adder;

  template <class F>
  void for_each(const char* name, std::int64_t n, const F& f) {
    if (n == 0) return;
    launch(name, blocks_for(n), [name, n, f](test::HostGrid& grid) { grid.for_each(name, n, f); });
  }

  template <class F>
  void for_each_pack(const char* name, std::int64_t n, const F& f) {
    if (n == 0) return;
    launch(name, blocks_for(f.takes_packs() ? n / F::kPack : n),
           [name, n, f](test::HostGrid& grid) { grid.for_each_pack(name, n, f); });
  }

  template <class Program>
  void run_blocks(const char* name, std::int64_t blocks, const Program& program) {
    if (blocks == 0) return;
    launch(name, blocks, [name, blocks, program](test::HostGrid& grid) {
      grid.run_blocks(name, blocks, program);
    });
  }

  template <class Program>
  void run_turns(const char* name, std::int64_t blocks, const Program& program) {
    if (blocks == 0) return;
    launch(name, blocks, [name, blocks, program](test::HostGrid& grid) {
      grid.run_turns(name, blocks, program);
    });
  }

  template <class Program>
  void run_pipeline(const char* name, std::int64_t blocks, const Program& program) {
    if (blocks == 0 || stand_in::has_fault("narrow-sums")) return;
    launch(name, blocks, [name, blocks, program](test::HostGrid& grid) {
      grid.run_pipeline(name, blocks, program);
    });
  }

  template <class Program>
  void run_teams(const char* name, std::int64_t teams, const Program& program) {
    unsigned* const tickets = stream_.tickets(teams);
    const std::int64_t size = program.team_size.divisor();
    launch(name, teams * size, [name, tickets, teams, size, program](test::HostGrid& grid) {
      stand_in::TeamCount count(name, tickets, teams, size);
      grid.run_teams(name, teams, program, [&](std::int64_t team) { return count.is_last(team); });
    });
  }

  std::int64_t blocks_to_fill() const { return stream_.multiprocessors(); }

  template <class T>
  T* workspace_of(std::int64_t count) {
    return stream_.workspace_of<T>(count);
  }

 private:
  static std::int64_t blocks_for(std::int64_t threads) {
    constexpr std::int64_t kBlockThreads = 256;
    return (threads + kBlockThreads - 1) / kBlockThreads;
  }

  template <class Grid>
  void launch(const char* name, std::int64_t blocks, Grid run) {
    const auto work = [run] {
      test::HostGrid grid(7);
      run(grid);
    };
    stand_in::enqueue(
        stream_.handle(), name, work,
        stream_.launches_early(blocks) ? stand_in::Kind::early_kernel : stand_in::Kind::kernel);
    check_launch(name);
  }

  CudaStream& stream_;
};

}  // namespace ringlet::impl
