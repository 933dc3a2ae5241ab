#include "kernels/cpu/gemm.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "kernels/linear.h"

namespace ringlet::impl {

namespace {

constexpr std::size_t kAddresses = std::size_t{129} << 20;  // of a product, with some to spare

struct Products {
  std::mutex mutex;
  int running = 0;
  int most = 0;  // that ran at once
};

Products& products() {
  static Products all;
  return all;
}

bool addresses_are_limited() {
  static const bool limited = [] {
    rlimit limit{};
    return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  }();
  return limited;
}

bool has_addresses() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const found = ::mmap(nullptr, kAddresses, PROT_NONE, kFlags, -1, 0);
  return found != MAP_FAILED && ::munmap(found, kAddresses) == 0;
}

}  // namespace

GemmMemory::GemmMemory() {
  if (!addresses_are_limited()) return;
  Products& all = products();
  const std::lock_guard lock(all.mutex);
  if (all.running == all.most && !has_addresses()) throw std::bad_alloc();
  ++all.running;
  all.most = std::max(all.most, all.running);
}

GemmMemory::~GemmMemory() {
  if (!addresses_are_limited()) return;
  const std::lock_guard lock(products().mutex);
  --products().running;
}

}  // namespace ringlet::impl

namespace ringlet {

std::string product_kernels() { return openblas_get_corename(); }

std::string other_build_of_openblas() {
  switch (openblas_get_parallel()) {
    case OPENBLAS_SEQUENTIAL:
      return "serial";
    case OPENBLAS_OPENMP:
      return "OpenMP";
    default:
      return {};
  }
}

}  // namespace ringlet
