// The tensors of a safetensors file, summarised while they stream by.
#pragma once

#include <vector>

#include "app/inspect/statistics.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::app::inspect {

struct TensorSummary {
  train::TensorSpec spec;
  std::uint64_t bytes = 0;
  Statistics statistics;
};

/// Reads all tensors, in their order in the file, in the memory of one piece. Throws FileError.
std::vector<TensorSummary> summarise_tensors(train::SafetensorsStream& file);

}  // namespace ringlet::app::inspect
