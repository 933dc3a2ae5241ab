// As CUDA 13 tells of edges.
#include "kernels/cuda/graph_edges.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/cuda_error.h"

namespace ringlet {

GraphEdges edges_of(cudaGraph_t graph) {
  GraphEdges edges;
  check_cuda(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges.count),
             "cudaGraphGetEdges");
  std::vector<cudaGraphNode_t> from(edges.count), to(edges.count);
  std::vector<cudaGraphEdgeData> data(edges.count);
  check_cuda(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &edges.count),
             "cudaGraphGetEdges");
  edges.early = std::count_if(data.begin(), data.end(), [](const cudaGraphEdgeData& edge) {
    return edge.type == cudaGraphDependencyTypeProgrammatic;
  });
  return edges;
}

}  // namespace ringlet
