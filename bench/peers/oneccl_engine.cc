// oneCCL's all-reduce of host memory, between ranks that an MPI has started.
#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <oneapi/ccl.hpp>
#include <stdexcept>

#include "bench/peers/mpi_engine.h"

namespace ringlet::bench::peers {

namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody writes it
  return value == nullptr ? otherwise : value;
}

/// Collective: rank 0 says where its store is, the others go there.
ccl::communicator make_communicator() {
  ccl::init();
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ccl::kvs::address_type address{};
  ccl::shared_ptr_class<ccl::kvs> store;
  if (rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  mpi_check(
      MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD),
      "MPI_Bcast");
  if (rank != 0) store = ccl::create_kvs(address);
  return ccl::create_communicator(ranks, rank, store);
}

/// One for all sizes. Shared, as who sums keeps it.
std::shared_ptr<ccl::communicator> communicator() {
  static const auto made = std::make_shared<ccl::communicator>(make_communicator());
  return made;
}

}  // namespace

void mpi_check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw std::runtime_error(std::string(call) + " failed");
}

int engine_thread_level() { return MPI_THREAD_MULTIPLE; }

std::string engine_name() { return "oneccl"; }

std::string engine_transport() { return environment("CCL_ATL_TRANSPORT", "mpi"); }

std::string engine_strategy(CollectiveId) { return environment("CCL_ALLREDUCE", "default"); }

std::function<void()> engine_all_reduce(std::span<float> data) {
  return [to = data.data(), count = data.size(), over = communicator()] {
    ccl::allreduce(to, to, count, ccl::reduction::sum, *over).wait();
  };
}

}  // namespace ringlet::bench::peers
