// What MPI does only where something is wrong, for tests. Loaded before MPI (LD_PRELOAD):
//
//   BROKEN_MPI_STUCK=FILE    once the file is there, MPI_Test does not return
//   BROKEN_MPI_THREADS=0     MPI has no MPI_THREAD_MULTIPLE
//   BROKEN_MPI_LATE=N        the process that Slurm calls N is a second behind in MPI_Init, after
//                            it has told the others where it is
//
// Instead of libringlet_mpi.so, it is one of another version.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "comm/transport/mpi/mpi_module.h"

namespace {

template <class Function>
Function* true_one(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int MPI_Test(void* request, int* done, void* status) {
  static const char* const file = std::getenv("BROKEN_MPI_STUCK");
  while (file != nullptr && ::access(file, F_OK) == 0) ::pause();
  static auto* const test = true_one<int(void*, int*, void*)>("MPI_Test");
  return test(request, done, status);
}

int MPI_Query_thread(int* level) {
  if (std::getenv("BROKEN_MPI_THREADS") == nullptr) {
    return true_one<int(int*)>("MPI_Query_thread")(level);
  }
  *level = 0;
  return 0;
}

int PMIx_Fence_nb(const void* processes, std::size_t count, const void* facts,
                  std::size_t facts_count, void (*done)(int status, void* what), void* what) {
  using Done = void (*)(int, void*);
  using Fence = int(const void*, std::size_t, const void*, std::size_t, Done, void*);
  static auto* const fence = true_one<Fence>("PMIx_Fence_nb");
  static bool is_first = true;
  static Done tell = nullptr;
  const char* const late = std::getenv("BROKEN_MPI_LATE");
  const char* const own = std::getenv("SLURM_PROCID");
  if (is_first && late != nullptr && own != nullptr && std::string_view(late) == own) {
    tell = done;
    // Another thread waits: MPI goes on to take in what comes.
    done = [](int status, void* told) {
      std::thread([=] {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        tell(status, told);
      }).detach();
    };
  }
  is_first = false;
  return fence(processes, count, facts, facts_count, done, what);
}

const ringlet::comm::MpiModule* ringlet_mpi_module() {
  static const ringlet::comm::MpiModule module{.version = ringlet::comm::MpiModule::kVersion + 1};
  return &module;
}

}  // extern "C"
