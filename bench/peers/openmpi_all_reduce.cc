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
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/peers/measurement.h"
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

// Open MPI's control variables (MPI_T), as mpirun's --mca and the environment have set them.

/// MPI_T's own life, apart from MPI's.
class Tools {
 public:
  Tools() {
    int provided = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  }
  ~Tools() { MPI_T_finalize(); }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;
};

/// One variable's bytes; empty where there is none of that name.
std::vector<char> read_variable(const char* name) {
  const Tools tools;
  int index = 0, elements = 0;
  MPI_T_cvar_handle handle{};
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return {};
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &elements) != MPI_SUCCESS) return {};
  std::vector<char> value(static_cast<std::size_t>(elements) * sizeof(long long) + 1);
  const int code = MPI_T_cvar_read(handle, value.data());
  MPI_T_cvar_handle_free(&handle);
  return code == MPI_SUCCESS ? value : std::vector<char>{};
}

std::string text_of(const char* name) {
  const std::vector<char> value = read_variable(name);
  return value.empty() ? "" : std::string(value.data());
}

int number_of(const char* name) {
  const std::vector<char> value = read_variable(name);
  int number = 0;
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

bool lists(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// How bytes go between the ranks: "vader-cma" (shared memory; the kernel copies large messages
/// from the sender's memory), "vader" (shared memory only), "tcp", "ucx"; "auto" where mpirun was
/// not told. To be called after MPI_Init.
std::string openmpi_transport() {
  if (text_of("pml") == "ucx") return "ucx";
  const std::string btl = text_of("btl");
  if (!lists(btl, "vader")) return lists(btl, "tcp") ? "tcp" : "auto";
  constexpr int kCma = 1;
  return number_of("btl_vader_single_copy_mechanism") == kCma ? "vader-cma" : "vader";
}

/// Which algorithm sums: of component tuned "default" (its own choice by size), "linear",
/// "reduce-broadcast", "recursive-doubling", "ring", "segmented-ring", "rabenseifner"; or the
/// component that was given a higher priority: "sm", "han", "adapt".
std::string openmpi_strategy() {
  const int tuned = number_of("coll_tuned_priority");
  for (const char* other : {"sm", "han", "adapt"}) {
    if (number_of(("coll_" + std::string(other) + "_priority").c_str()) > tuned) return other;
  }
  constexpr std::array kTuned{"default", "linear",         "reduce-broadcast", "recursive-doubling",
                              "ring",    "segmented-ring", "rabenseifner"};
  const auto chosen = static_cast<std::size_t>(number_of("coll_tuned_allreduce_algorithm"));
  if (number_of("coll_tuned_use_dynamic_rules") == 0 || chosen >= kTuned.size()) return kTuned[0];
  return kTuned[chosen];
}

void run(const Mpi& mpi, const Options& options, const std::string& file) {
  const std::vector<std::int64_t> sizes = sizes_of(options);
  const std::string transport = openmpi_transport(), strategy = openmpi_strategy();
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
    Measurement row = measure(meeting, data, options.calls, all_reduce, settle);
    row.engine = "openmpi";
    row.transport = transport;
    row.strategy = strategy;
    if (mpi.rank() == 0) print_line(row);
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
  namespace peers = ringlet::bench::peers;
  return peers::run_guarded("openmpi_all_reduce", [&] { return peers::run(argc, argv); });
}
