// MPI_Allreduce between processes of one machine, timed as Ringlet times its own (measurement.h): a
// line of JSON a size.
//
//   mpirun -n 2 --mca pml ob1 --mca btl self,vader --mca coll_tuned_use_dynamic_rules 1
//     --mca coll_tuned_allreduce_algorithm 4 openmpi_all_reduce --sizes 4K,512K
//
// mpirun chooses how bytes go and which algorithm sums. The rows name what Open MPI's own variables
// hold then (MPI_T), not what mpirun was asked for. bench/peers/all_reduce starts it with all
// settings that count.
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "bench/peers/measurement.h"
#include "bench/peers/openmpi_variables.h"
#include "bench/peers/options.h"

namespace ringlet::bench::peers {

namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw std::runtime_error(fmt::format("{} failed: {}", call, text.data()));
}

/// From MPI_Init to MPI_Finalize.
class Mpi {
 public:
  Mpi(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  int rank_ = 0, size_ = 0;
};

/// Zeroed memory of rank 0 that all ranks see: MPI's, or a file's. Ranks on machines that one plays
/// (scripts/machines) have only the file in common.
class SharedMemory {
 public:
  SharedMemory(int rank, std::size_t bytes, const std::string& file) {
    if (!file.empty()) {
      if (rank == 0) make_file(file, bytes);
      check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
      map_file(file, bytes);
      return;
    }
    const MPI_Aint own = rank == 0 ? static_cast<MPI_Aint>(bytes) : 0;
    check(MPI_Win_allocate_shared(own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_),
          "MPI_Win_allocate_shared (are all ranks on one machine?)");
    MPI_Aint size = 0;
    int unit = 0;
    check(MPI_Win_shared_query(window_, 0, &size, &unit, &memory_), "MPI_Win_shared_query");
    if (rank == 0) std::fill_n(static_cast<std::byte*>(memory_), bytes, std::byte{0});
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  }
  ~SharedMemory() {
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const { return memory_; }

 private:
  static void make_file(const std::string& file, std::size_t bytes) {
    const int made = ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool sized = made >= 0 && ::ftruncate(made, static_cast<off_t>(bytes)) == 0;
    if (made >= 0) ::close(made);
    if (!sized) throw std::runtime_error(file + " cannot be made; give --meeting another file");
  }
  void map_file(const std::string& file, std::size_t bytes) {
    const int opened = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    if (opened >= 0) {
      memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
      ::close(opened);
    }
    if (opened < 0 || memory_ == MAP_FAILED) {
      throw std::runtime_error(file + " cannot be mapped; --meeting is a file that all ranks see");
    }
  }

  void* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

void run(const Mpi& mpi, const Options& options, const std::string& file) {
  const std::vector<std::int64_t> sizes = sizes_of(options);
  const Engine engine{"openmpi", openmpi_transport(), openmpi_strategy()};
  const int iterations = most_timed(options.calls);
  const SharedMemory memory(mpi.rank(), Meeting::bytes(mpi.size(), iterations), file);
  Meeting meeting(memory.data(), mpi.rank(), mpi.size(), iterations);
  for (const std::int64_t bytes : sizes) {
    Floats floats(bytes);
    const std::span<float> data = floats.span();
    const auto all_reduce = [&] {
      check(MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT,
                          MPI_SUM, MPI_COMM_WORLD),
            "MPI_Allreduce");
    };
    // MPI makes progress only inside of its calls: nothing of the last call may wait in a rank that
    // spins.
    const auto settle = [] { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); };
    const Measurement measurement = measure(meeting, data, options.calls, all_reduce, settle);
    if (mpi.rank() != 0) continue;
    fmt::print("{}\n", json_line(engine, mpi.size(), bytes, measurement));
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  const Mpi mpi(argc, argv);
  CLI::App app(
      "Times Open MPI's MPI_Allreduce (f32, sum, in place): mpirun -n RANKS openmpi_all_reduce",
      "openmpi_all_reduce");
  Options options;
  std::string file;
  add_options(app, options);
  app.add_option("--meeting", file, "a file in which ranks of played machines meet")
      ->type_name("FILE");
  return run_program(app, argc, argv, mpi.rank() == 0, [&] { run(mpi, options, file); });
}

}  // namespace

}  // namespace ringlet::bench::peers

int main(int argc, char** argv) {
  try {
    return ringlet::bench::peers::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "openmpi_all_reduce: error: %s\n", error.what());
    return 1;
  }
}
