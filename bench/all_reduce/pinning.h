// Pinning: each rank on a processor of its own, for as long as it is measured.
//
// Left to itself, the system may put two ranks on one processor and leave them there, above all
// after one has woken the other. The strategies measured from then on look many times slower than
// those before. MPI's launchers pin their ranks as well.
#pragma once

namespace ringlet::bench {

/// Whether `ranks` find a processor each among those that this process may use.
bool can_pin(int ranks);

/// Keeps the calling thread, and those that it starts, on the rank-th of those processors, from the
/// start again where ranks outnumber them. False, and errno, where the system does not let it.
bool pin_rank(int rank);

}  // namespace ringlet::bench
