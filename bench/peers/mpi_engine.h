// What sums in mpi_all_reduce.cc, and what rows call it: an MPI itself (mpi_engine.cc), or oneCCL
// between ranks that an MPI has started (oneccl_engine.cc).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "bench/all_reduce/collective.h"

namespace ringlet::bench::peers {

/// Throws std::runtime_error with MPI's own words where `code`, what `call` returned, is an error.
void mpi_check(int code, const char* call);

/// What MPI_Init_thread is to be asked for.
int engine_thread_level();

// To be called between MPI_Init and MPI_Finalize.

/// "openmpi" (4), "openmpi5", "mpich", "intel-mpi" or "oneccl".
std::string engine_name();
/// How bytes go between the ranks.
std::string engine_transport();
/// Which algorithm runs; "default" where that is the engine's own choice.
std::string engine_strategy(CollectiveId id);

/// Sums `data` over all ranks in place. Collective, and so is each call of what it returns.
std::function<void()> engine_all_reduce(std::span<float> data);

}  // namespace ringlet::bench::peers
