// An MPI's own all-reduce, and the words for it. Open MPI's rows name what its own variables hold
// (MPI_T), as mpirun's --mca and the environment have set them; those of other MPIs the variables
// of the environment that choose there.
#include "bench/peers/mpi_engine.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace ringlet::bench::peers {

namespace {

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return text.data();
}

bool is_openmpi() { return library_version().starts_with("Open MPI"); }

/// "" where it is not set.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody writes it
  return value == nullptr ? "" : value;
}

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

/// "vader-cma" (shared memory; the kernel copies large messages from the sender's memory), "vader"
/// (shared memory only), "tcp", "ucx"; "auto" where mpirun was not told. Open MPI 5 calls the
/// second "sm", and so do its rows.
std::string openmpi_transport() {
  if (text_of("pml") == "ucx") return "ucx";
  const std::string btl = text_of("btl");
  if (lists(btl, "sm")) return lists(text_of("smsc"), "cma") ? "sm-cma" : "sm";
  if (!lists(btl, "vader")) return lists(btl, "tcp") ? "tcp" : "auto";
  constexpr int kCma = 1;
  return number_of("btl_vader_single_copy_mechanism") == kCma ? "vader-cma" : "vader";
}

/// Which algorithm of another collective than all-reduce the component tuned was told to take; its
/// own choice by size is "default".
std::string openmpi_strategy_of(CollectiveId id) {
  const char* const variable = id == CollectiveId::all_gather ? "coll_tuned_allgather_algorithm"
                               : id == CollectiveId::reduce_scatter
                                   ? "coll_tuned_reduce_scatter_block_algorithm"
                               : id == CollectiveId::broadcast  ? "coll_tuned_bcast_algorithm"
                               : id == CollectiveId::reduce     ? "coll_tuned_reduce_algorithm"
                               : id == CollectiveId::all_to_all ? "coll_tuned_alltoall_algorithm"
                                                                : "";
  const bool is_told = number_of("coll_tuned_use_dynamic_rules") != 0;
  const int chosen = is_told ? number_of(variable) : 0;
  return chosen == 0 ? "default" : fmt::format("algorithm {}", chosen);
}

/// Which algorithm sums: of component tuned "default" (its own choice by size), "linear",
/// "reduce-broadcast", "recursive-doubling", "ring", "segmented-ring", "rabenseifner"; or the
/// component that was given a higher priority: "sm", "han", "adapt". Open MPI 5 gives "han" the
/// higher one by itself, and leaves it out on a single machine.
std::string openmpi_all_reduce_strategy() {
  const int tuned = number_of("coll_tuned_priority");
  for (const char* other : {"sm", "han", "adapt"}) {
    if (std::string(other) == "han" && engine_name() == "openmpi5") continue;
    if (number_of(("coll_" + std::string(other) + "_priority").c_str()) > tuned) return other;
  }
  constexpr std::array kTuned{"default", "linear",         "reduce-broadcast", "recursive-doubling",
                              "ring",    "segmented-ring", "rabenseifner"};
  const auto chosen = static_cast<std::size_t>(number_of("coll_tuned_allreduce_algorithm"));
  if (number_of("coll_tuned_use_dynamic_rules") == 0 || chosen >= kTuned.size()) return kTuned[0];
  return kTuned[chosen];
}

std::string openmpi_strategy(CollectiveId id) {
  return id == CollectiveId::all_reduce ? openmpi_all_reduce_strategy() : openmpi_strategy_of(id);
}

/// The first that is set of the variables with which MPICH and Intel's MPI, made from it, are told.
std::string told(std::initializer_list<const char*> variables, const char* otherwise) {
  for (const char* variable : variables) {
    if (std::string value = environment(variable); !value.empty()) return value;
  }
  return otherwise;
}

}  // namespace

void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw std::runtime_error(fmt::format("{} failed: {}", call, text.data()));
}

int engine_thread_level() { return MPI_THREAD_SINGLE; }

std::string engine_name() {
  const std::string version = library_version();
  if (version.starts_with("MPICH")) return "mpich";
  if (version.starts_with("Intel")) return "intel-mpi";
  return version.starts_with("Open MPI v5") ? "openmpi5" : "openmpi";
}

std::string engine_transport() {
  return is_openmpi() ? openmpi_transport()
                      : told({"MPIR_CVAR_CH4_NETMOD", "I_MPI_FABRICS"}, "shm");
}

std::string engine_strategy(CollectiveId id) {
  if (is_openmpi()) return openmpi_strategy(id);
  if (id != CollectiveId::all_reduce) return "default";
  const std::string number = environment("I_MPI_ADJUST_ALLREDUCE");
  if (!number.empty()) return "algorithm " + number;
  return told({"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM"},
              "default");
}

std::function<void()> engine_all_reduce(std::span<float> data) {
  return [to = data.data(), count = static_cast<int>(data.size())] {
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce");
  };
}

}  // namespace ringlet::bench::peers
