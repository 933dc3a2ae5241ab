// CostModel: three numbers of a machine, by which strategies predict their time
// (all_reduce/cost_model.h).
#pragma once

namespace ringlet::comm {

struct CostModel {
  double latency_s = 0;
  double seconds_per_byte = 0;
  double seconds_per_reduced_byte = 0;
};

/// Round figures for Ethernet of 1 Gbit/s between machines.
inline constexpr CostModel kEthernetCosts{100e-6, 1 / 115e6, 1 / 20e9};

}  // namespace ringlet::comm
