// Open MPI's control variables (MPI_T), as mpirun's --mca and the environment have set them.
#pragma once

#include <string>

namespace ringlet::bench::peers {

/// How bytes go between the ranks: "vader-cma" (shared memory; the kernel copies large messages
/// from the sender's memory), "vader" (shared memory only), "tcp", "ucx"; "auto" where mpirun was
/// not told. To be called after MPI_Init.
std::string openmpi_transport();

/// Which algorithm sums: of component tuned "default" (its own choice by size), "linear",
/// "reduce-broadcast", "recursive-doubling", "ring", "segmented-ring", "rabenseifner"; or the
/// component that was given a higher priority: "sm", "han", "adapt".
std::string openmpi_strategy();

}  // namespace ringlet::bench::peers
