#include "kernels/cuda/graph_note.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/graph_edges.h"

namespace ringlet {

std::string describe(cudaGraph_t graph) {
  std::size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  const GraphEdges edges = edges_of(graph);
  const std::string early =
      edges.early ? ", " + std::to_string(*edges.early) + " of them early" : "";
  return "a graph of " + std::to_string(nodes) + " nodes and " + std::to_string(edges.count) +
         " edges" + early;
}

}  // namespace ringlet
