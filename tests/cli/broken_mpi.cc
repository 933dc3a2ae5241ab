// What MPI does only where something is wrong, for tests. Loaded before MPI (LD_PRELOAD):
//
//   BROKEN_MPI_STUCK=FILE    once the file is there, MPI_Test does not return
//   BROKEN_MPI_THREADS=0     MPI has no MPI_THREAD_MULTIPLE
//
// In the place of libringlet_mpi.so, it is one of another version.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

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

const ringlet::comm::MpiModule* ringlet_mpi_module() {
  static const ringlet::comm::MpiModule module{.version = ringlet::comm::MpiModule::kVersion + 1};
  return &module;
}

}  // extern "C"
