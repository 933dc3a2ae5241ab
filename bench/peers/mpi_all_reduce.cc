// MPI_Allreduce, or with --collective another of MPI's, between processes of one machine, timed as
// Ringlet times its own (measurement.h): a line of JSON a size. One source for every MPI, and for
// oneCCL, whose ranks meet over MPI (mpi_engine.h).
//
//   mpirun -n 2 --mca pml ob1 --mca btl self,vader --mca coll_tuned_use_dynamic_rules 1
//     --mca coll_tuned_allreduce_algorithm 4 openmpi_all_reduce --sizes 4K,512K
//
// bench/peers/all_reduce starts it with all settings that count.
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/peers/data.h"
#include "bench/peers/measurement.h"
#include "bench/peers/mpi_engine.h"
#include "bench/peers/options.h"

namespace ringlet::bench::peers {

namespace {

/// From MPI_Init to MPI_Finalize.
class Mpi {
 public:
  Mpi(int& argc, char**& argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, engine_thread_level(), &provided);
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
      mpi_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
      map_file(file, bytes);
      return;
    }
    const MPI_Aint own = rank == 0 ? static_cast<MPI_Aint>(bytes) : 0;
    mpi_check(MPI_Win_allocate_shared(own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_),
              "MPI_Win_allocate_shared (are all ranks on one machine?)");
    MPI_Aint size = 0;
    int unit = 0;
    mpi_check(MPI_Win_shared_query(window_, 0, &size, &unit, &memory_), "MPI_Win_shared_query");
    if (rank == 0) std::fill_n(static_cast<std::byte*>(memory_), bytes, std::byte{0});
    mpi_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
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

/// Below this, MPI_Sendrecv's only tag.
constexpr int kTag = 1;

/// The memory of one rank: where the result is, and the input apart, where the collective needs it.
struct Buffers {
  Buffers(const Collective& collective, std::int64_t bytes)
      : result(bytes), input(collective.is_in_place() ? 0 : bytes) {}
  Floats result, input;
};

/// What runs in MPI. `data`: of the result; `apart`: the input, where that is not in the result.
std::function<void()> call_of(CollectiveId id, const Mpi& mpi, std::span<float> data,
                              std::span<float> apart) {
  const int all = static_cast<int>(data.size()), part = all / mpi.size();
  const int above = (mpi.rank() + 1) % mpi.size();
  const int below = (mpi.rank() + mpi.size() - 1) % mpi.size();
  float* const to = data.data();
  const float* const from = apart.data();
  const bool is_root = mpi.rank() == kRoot;
  switch (id) {
    case CollectiveId::all_reduce:
      return engine_all_reduce(data);
    case CollectiveId::all_gather:
      return [=] {
        mpi_check(
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, part, MPI_FLOAT, MPI_COMM_WORLD),
            "MPI_Allgather");
      };
    case CollectiveId::reduce_scatter:
      return [=] {
        mpi_check(
            MPI_Reduce_scatter_block(MPI_IN_PLACE, to, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
            "MPI_Reduce_scatter_block");
      };
    case CollectiveId::broadcast:
      return [=] { mpi_check(MPI_Bcast(to, all, MPI_FLOAT, kRoot, MPI_COMM_WORLD), "MPI_Bcast"); };
    case CollectiveId::reduce:
      return [=] {
        mpi_check(MPI_Reduce(is_root ? MPI_IN_PLACE : to, is_root ? to : nullptr, all, MPI_FLOAT,
                             MPI_SUM, kRoot, MPI_COMM_WORLD),
                  "MPI_Reduce");
      };
    case CollectiveId::all_to_all:
      return [=] {
        mpi_check(MPI_Alltoall(from, part, MPI_FLOAT, to, part, MPI_FLOAT, MPI_COMM_WORLD),
                  "MPI_Alltoall");
      };
    case CollectiveId::send_recv:
      return [=] {
        mpi_check(MPI_Sendrecv(from, all, MPI_FLOAT, above, kTag, to, all, MPI_FLOAT, below, kTag,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Sendrecv");
      };
  }
  return {};
}

/// Elements of a rank's result that are not what the collective is to give.
std::int64_t wrong_in(CollectiveId id, const Mpi& mpi, std::span<const float> result, int call) {
  const auto part = static_cast<std::int64_t>(result.size()) / mpi.size();
  std::int64_t wrong = 0;
  switch (id) {
    case CollectiveId::all_reduce:
    case CollectiveId::reduce:
      return count_wrong(result, mpi.size(), call);
    case CollectiveId::reduce_scatter:  // `result` is the rank's part
      return count_wrong(result, mpi.size(), call, std::ssize(result) * mpi.rank());
    case CollectiveId::broadcast:
      return count_wrong_of(result, kRoot, mpi.size(), call, 0);
    case CollectiveId::send_recv:
      return count_wrong_of(result, (mpi.rank() + mpi.size() - 1) % mpi.size(), mpi.size(), call,
                            0);
    case CollectiveId::all_gather:
    case CollectiveId::all_to_all:
      for (int rank = 0; rank < mpi.size(); ++rank) {
        const auto piece =
            result.subspan(static_cast<std::size_t>(rank * part), static_cast<std::size_t>(part));
        wrong += count_wrong_of(piece, rank, mpi.size(), call,
                                id == CollectiveId::all_gather ? 0 : mpi.rank() * part);
      }
  }
  return wrong;
}

/// One rank's calls with these buffers.
Work work_of(const Collective& collective, const Mpi& mpi, Buffers& buffers) {
  const std::span<float> data = buffers.result.span(), apart = buffers.input.span();
  const std::size_t part = data.size() / static_cast<std::size_t>(mpi.size());
  std::span<float> input = collective.is_in_place() ? data : apart;
  if (collective.id == CollectiveId::all_gather) {
    input = data.subspan(part * static_cast<std::size_t>(mpi.rank()), part);
  }
  std::span<const float> result = data;
  if (collective.id == CollectiveId::reduce_scatter) result = data.first(part);
  if (collective.id == CollectiveId::reduce && mpi.rank() != kRoot) result = {};
  return {.collective = collective,
          .floats = std::ssize(data),
          .write_input = [=, rank = mpi.rank(),
                          ranks = mpi.size()](int call) { write_input(input, rank, ranks, call); },
          .run = call_of(collective.id, mpi, data, apart),
          .result = result,
          .count_wrong = [=, &mpi,
                          id = collective.id](int call) { return wrong_in(id, mpi, result, call); },
          // MPI makes progress only inside of its calls: nothing of the last call may wait in a
          // rank that spins.
          .settle = [] { mpi_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }};
}

/// The size rounded down, so that each rank's part has equally many floats. Throws
/// std::invalid_argument where that leaves none.
std::int64_t whole_size(std::int64_t bytes, const Collective& collective, int ranks) {
  const std::int64_t least = static_cast<std::int64_t>(sizeof(float)) * collective.parts(ranks);
  if (bytes >= least) return bytes / least * least;
  throw std::invalid_argument(fmt::format(
      "{} bytes hold no float for each of {} ranks; give {} or more", bytes, ranks, least));
}

void run(const Mpi& mpi, const Options& options, const Collective& collective,
         const std::string& file) {
  const std::vector<std::int64_t> sizes = sizes_of(options);
  const std::string engine = engine_name(), transport = engine_transport(),
                    strategy = engine_strategy(collective.id);
  const int iterations = most_timed(options.calls);
  const SharedMemory memory(mpi.rank(), Meeting::bytes(mpi.size(), iterations), file);
  Meeting meeting(memory.data(), mpi.rank(), mpi.size(), iterations);
  for (const std::int64_t bytes : sizes) {
    Buffers buffers(collective, whole_size(bytes, collective, mpi.size()));
    Measurement row = measure(meeting, work_of(collective, mpi, buffers), options.calls);
    row.engine = engine;
    row.transport = transport;
    row.strategy = strategy;
    if (mpi.rank() == 0) print_line(row);
  }
}

int run(int argc, char** argv) {
  const Mpi mpi(argc, argv);
  CLI::App app(
      "Times MPI_Allreduce (f32, sum, in place) or another of MPI's collectives: "
      "mpirun -n RANKS openmpi_all_reduce",
      "openmpi_all_reduce");
  Options options;
  std::string file, name = collectives().front().name;
  add_options(app, options);
  std::vector<std::string> names;
  for (const Collective& collective : collectives()) names.emplace_back(collective.name);
  app.add_option("--collective", name, "which [all-reduce]")
      ->check(CLI::IsMember(names))
      ->type_name("NAME");
  app.add_option("--meeting", file, "a file in which ranks of played machines meet")
      ->type_name("FILE");
  return run_program(app, argc, argv, mpi.rank() == 0,
                     [&] { run(mpi, options, *find_collective(name), file); });
}

}  // namespace

}  // namespace ringlet::bench::peers

int main(int argc, char** argv) {
  namespace peers = ringlet::bench::peers;
  return peers::run_guarded("openmpi_all_reduce", [&] { return peers::run(argc, argv); });
}
