// The convolutions of one stream on cuDNN, with the plan that was chosen for each shape.
//
// cuDNN's older calls (cudnnConvolutionForward and its like) are not kept as a last resort: they
// are deprecated, and tests/kernels/cudnn_graph_test.cc shows that the graph API has an engine for
// every convolution there, under the strictest settings.
//
// Beside tensors in nhwc, cuDNN wants filters as [O, KH, KW, C/groups]. Of row-major ones a product
// reads a copy, and their gradient is copied back. What is alike in both orders (1 x 1, or one
// channel) is not copied.
//
// cuDNN's ready-made engines write the gradient of filters in the type of its factors. It is to be
// f32. So narrow factors are widened, and multiplied as TF32, which holds them exactly.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/conv2d_graph.h"
#include "kernels/cuda/plan_cache.h"

namespace ringlet {

class CudaStream;

class CudnnConvolutions {
 public:
  struct Key : cudnn_graph::Conv2dKey {
    Layout filter = Layout::nchw;  ///< of w, as the caller has it; a gradient of it is f32
  };

  /// Addresses of x, w, y and bias (null without one), or of their gradients.
  using Addresses = std::array<void*, 4>;

  /// Throws DeviceError where cuDNN is missing or cannot use the device.
  explicit CudnnConvolutions(CudaStream& stream);

  /// Returns false where no engine can do it, or its ReLU loses NaN. The first call for a key
  /// chooses the plan; later ones allocate nothing, as long as the addresses are among the last few
  /// of that key.
  bool try_run(const Key& key, const Addresses& addresses);
  /// Throws DeviceError with cuDNN's last reason where no engine can do it.
  void run(const Key& key, const Addresses& addresses);

  /// Whether cuDNN has a plan for this gradient of filters that keeps a GPU busy. (The naive ones
  /// are those of deterministic streams.)
  bool sums_filters_fast(const Key& key, const Addresses& addresses);

  /// See CudaLibraries.
  void follow_stream();

 private:
  /// Memory that is in use until the convolution ends.
  struct Scratch {
    Addresses copies{};         ///< of x, w and y; null where none is needed
    void* workspace = nullptr;  ///< the plan's
  };
  /// A variant pack cannot be changed, so the last ones are kept.
  struct Pack {
    Addresses addresses;
    void* workspace;
    cudnn_graph::Descriptor descriptor;
  };
  struct Entry {
    cudnn_graph::Conv2dGraph graph;
    std::optional<cudnn_graph::Plan> plan;  // none where no engine can do it
    std::string why_not;
    bool is_naive = false;  // the plan: is_naive_filter_gradient()
    std::vector<Pack> packs;
    std::size_t oldest = 0;  // of the packs
  };

  Entry make_entry(const Key& key, const Addresses& addresses);
  bool keeps_nan(const Key& key, const cudnn_graph::Plan& plan);
  std::size_t choose(const Key& key, const std::vector<cudnn_graph::Plan>& plans,
                     const Addresses& addresses);
  const cudnn_graph::Descriptor& pack(Entry& entry, const Addresses& addresses, void* workspace);
  Entry& find(const Key& key, const Addresses& addresses);
  void execute(Entry& entry, const Key& key, const Addresses& addresses);
  void launch(Entry& entry, const Key& key, const Addresses& addresses, void* workspace);
  Scratch scratch_for(const Key& key, std::int64_t workspace_bytes);

  CudaStream& stream_;
  std::unique_ptr<cudnnContext, decltype(&cudnnDestroy)> handle_;
  PlanCache<cudnn_graph::Conv2dKey, Entry> entries_;
};

}  // namespace ringlet
