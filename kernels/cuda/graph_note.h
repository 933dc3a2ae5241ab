// What a captured graph holds, as a line for people.
#pragma once

#include <string>

struct CUgraph_st;  // cudaGraph_t

namespace ringlet {

/// "a graph of 21 nodes and 21 edges, 4 of them early". Early: the node behind the edge is launched
/// before the one in front has ended (cuda_grid.cuh). CUDA 12 does not say which are: then the line
/// ends before.
std::string describe(CUgraph_st* graph);

}  // namespace ringlet
