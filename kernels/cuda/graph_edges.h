// The edges of a captured graph, counted.
#pragma once

#include <cstddef>
#include <optional>

struct CUgraph_st;  // cudaGraph_t

namespace ringlet {

struct GraphEdges {
  std::size_t count = 0;
  std::optional<std::size_t> early;  ///< programmatic ones; none where CUDA does not say
};

/// Throws DeviceError.
GraphEdges edges_of(CUgraph_st* graph);

}  // namespace ringlet
