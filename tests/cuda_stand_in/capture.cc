// The run time's captures and graphs.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/cuda_stand_in/runtime.h"

namespace ringlet::stand_in {

thread_local std::shared_ptr<Capture> capturing;

namespace {

std::set<std::shared_ptr<Capture>> captures;  // under way, of all threads

}  // namespace

bool forbidden(const char* call) {
  if (is_broken()) return failed(cudaErrorIllegalAddress) != cudaSuccess;
  bool found = false;
  for (const std::shared_ptr<Capture>& capture : captures) {
    const bool is_own = capture == capturing && capture->mode != cudaStreamCaptureModeRelaxed;
    if (!is_own && capture->mode != cudaStreamCaptureModeGlobal) continue;
    break_capture(*capture, cudaErrorStreamCaptureUnsupported, call);
    found = true;
  }
  return found;
}

cudaError_t break_capture(Capture& capture, cudaError_t error, const char* call) {
  if (!capture.broken) capture.why = std::string(call) + " while a stream is captured";
  capture.broken = true;
  return refuse(error, std::string(call) + " while a stream is captured");
}

cudaError_t refuse_broken(const Capture& capture) {
  return refuse(cudaErrorStreamCaptureInvalidated, "the capture has ended by " + capture.why);
}

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

struct CUgraph_st {
  Nodes nodes;
};

struct CUgraphExec_st {
  explicit CUgraphExec_st(const Nodes& nodes) : runs(nodes) {}
  GraphRuns runs;
};

namespace {

std::map<cudaGraphExec_t, std::shared_ptr<CUgraphExec_st>> executables;

void write_nodes(const Nodes& nodes) {
  const char* file = std::getenv("RINGLET_STAND_IN_NODES");
  if (file == nullptr) return;
  std::ofstream out(file, std::ios::app);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool beside = i > 0 && !nodes[i].after.contains(i - 1);
    out << (i == 0 ? "" : " ") << (beside ? "|" : "") << nodes[i].name;
  }
  out << "\n";
}

}  // namespace

extern "C" {

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->broken  ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (stream->capture != nullptr || capturing != nullptr) return failed(cudaErrorIllegalState);
  capturing = stream->capture = std::make_shared<Capture>();
  capturing->origin = stream;
  capturing->mode = mode;
  captures.insert(capturing);
  stream->last.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(mutex);
  *graph = nullptr;
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (capturing == nullptr || capturing->origin != stream) return failed(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = std::exchange(capturing, nullptr);
  capture->ended = true;
  captures.erase(capture);
  for (const cudaStream_t member : streams) {
    if (member->capture == capture) member->capture = nullptr;
  }
  if (capture->broken) return refuse_broken(*capture);
  if (!all_come_before(capture->nodes, stream->last)) {
    return failed(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new CUgraph_st{std::move(capture->nodes)};
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes != nullptr) return failed(cudaErrorNotSupported);
  *count = graph->nodes.size();
  return cudaSuccess;
}

// As CUDA 13 has it. A kernel that is launched early has such an edge from a kernel alone.
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t*, cudaGraphNode_t*,
                              cudaGraphEdgeData* data, std::size_t* count) {
  std::size_t found = 0;
  for (const Node& node : graph->nodes) {
    for (const std::size_t before : node.after) {
      const bool is_early =
          node.kind == Kind::early_kernel && graph->nodes[before].kind != Kind::other;
      cudaGraphEdgeData edge{};
      if (is_early) edge.from_port = cudaGraphKernelNodePortProgrammatic;
      if (is_early) edge.type = cudaGraphDependencyTypeProgrammatic;
      if (data != nullptr && found < *count) data[found] = edge;
      ++found;
    }
  }
  *count = found;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const Lock lock(mutex);
  if (is_broken()) return failed(cudaErrorIllegalAddress);
  write_nodes(graph->nodes);
  const auto made = std::make_shared<CUgraphExec_st>(graph->nodes);
  *executable = made.get();
  executables[*executable] = made;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Lock lock(mutex);
  return enqueue_waiting(stream, "graph",
                         [graph = executables.at(executable)] { return graph->runs.go_on(); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock lock(mutex);
  executables.erase(executable);
  return cudaSuccess;
}

}  // extern "C"
