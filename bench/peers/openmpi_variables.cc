#include "bench/peers/openmpi_variables.h"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace ringlet::bench::peers {

namespace {

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

}  // namespace

std::string openmpi_transport() {
  if (text_of("pml") == "ucx") return "ucx";
  const std::string btl = text_of("btl");
  if (!lists(btl, "vader")) return lists(btl, "tcp") ? "tcp" : "auto";
  constexpr int kCma = 1;
  return number_of("btl_vader_single_copy_mechanism") == kCma ? "vader-cma" : "vader";
}

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

}  // namespace ringlet::bench::peers
