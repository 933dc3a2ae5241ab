// CostModel: three numbers of a machine, by which strategies predict their time
// (all_reduce/cost_model.h).
#pragma once

namespace ringlet::comm {

struct CostModel {
  double latency_s = 0;
  double seconds_per_byte = 0;
  double seconds_per_reduced_byte = 0;
};

}  // namespace ringlet::comm
