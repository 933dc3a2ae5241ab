// Loaded before OpenBLAS (LD_PRELOAD): it says that it is the build that OTHER_OPENBLAS numbers, as
// cblas.h does: 0 serial, 1 for POSIX threads, 2 with OpenMP.
#include <cstdlib>

extern "C" int openblas_get_parallel() {
  const char* build = std::getenv("OTHER_OPENBLAS");
  return build == nullptr ? 1 : std::atoi(build);
}
