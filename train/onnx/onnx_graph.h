// The nodes of an ONNX graph from the operations that a dry run recorded (nn/recorded_graph.h).
//
// onnx_graph.cc has a table of operations; one that ONNX has as well is a row there. A node has the
// name of the layer that the operation belongs to, and so has its output; a layer's further nodes
// have the operation's name behind that, "block1/add".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/recorded_graph.h"
#include "train/files/state.h"

namespace ringlet::train {

namespace onnx {  // of onnx.proto
class Graph;
class Node;
class Tensor;
}  // namespace onnx

inline constexpr int kOnnxFloat = 1;  ///< of ONNX's element types
inline constexpr int kOnnxInt64 = 7;

/// Appends a node for each operation to `graph`, and each parameter's numbers from `weights` under
/// its name. `input`: the value that the model is given, by its name in `graph`; what the model
/// gives becomes `output`. Throws ContractError naming the layer and an operation that ONNX has
/// not.
void write_nodes(const nn::RecordedGraph& recorded, const HostState& weights,
                 const std::string& input, const std::string& output, onnx::Graph& graph);

/// Appends a tensor that has `extents`, and returns it for its numbers.
onnx::Tensor& add_tensor(onnx::Graph& graph, const std::string& name, int type,
                         const std::vector<std::int64_t>& extents);
/// Appends a node; its output has its name.
onnx::Node& add_node(onnx::Graph& graph, const std::string& operation, const std::string& name,
                     const std::vector<std::string>& inputs);

}  // namespace ringlet::train
