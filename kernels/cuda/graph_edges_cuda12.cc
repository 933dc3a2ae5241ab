// As CUDA 12 tells of edges: the call that all of its versions have knows no kinds of them.
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/graph_edges.h"

namespace ringlet {

GraphEdges edges_of(cudaGraph_t graph) {
  GraphEdges edges;
  check_cuda(cudaGraphGetEdges(graph, nullptr, nullptr, &edges.count), "cudaGraphGetEdges");
  return edges;
}

}  // namespace ringlet
