// What the graphs hold that a run captures on the stand-in for GPUs
// (tests/cuda_stand_in/stand_in.h).
#pragma once

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda_devices.h"
#include "tests/support/files.h"

namespace ringlet::train {

inline bool on_stand_in() {
  const std::vector<CudaDeviceInfo> gpus = survey_cuda().devices;
  return !gpus.empty() && gpus[0].name.starts_with("stand-in");
}

using NodesOfGraphs = std::vector<std::vector<std::string>>;

/// The names of the nodes of each graph that `run` captures. None but on the stand-in.
template <class Run>
NodesOfGraphs nodes_of_graphs(Run run) {
  const testing::TemporaryDirectory folder;
  const std::string file = (folder.path() / "nodes").string();
  setenv("RINGLET_STAND_IN_NODES", file.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  run();
  unsetenv("RINGLET_STAND_IN_NODES");  // NOLINT(concurrency-mt-unsafe)
  NodesOfGraphs graphs;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    graphs.emplace_back(std::istream_iterator<std::string>(words),
                        std::istream_iterator<std::string>());
  }
  return graphs;
}

}  // namespace ringlet::train
