#include "kernels/cuda/cudnn_convolutions.h"

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/autotune.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/engine_note.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/nan_probe.h"
#include "kernels/cuda/views.h"
#include "kernels/implementations.h"

namespace ringlet {

using cudnn_graph::Conv2dGraph;
using cudnn_graph::Conv2dPass;
using cudnn_graph::Descriptor;
using cudnn_graph::Plan;

namespace {

constexpr int kCandidates = 8;     // that autotuning times
constexpr std::size_t kPacks = 8;  // layers of equal shape, and batches in turn, for each key

/// Heuristic B is slower to answer and orders better; who autotunes has the time.
std::vector<cudnnBackendHeurMode_t> modes(bool tuned) {
  if (tuned) return {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  return {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
}

Descriptor make_pack(const CudnnConvolutions::Addresses& addresses, void* workspace) {
  static constexpr std::array<std::int64_t, 4> kIds = {cudnn_graph::kX, cudnn_graph::kW,
                                                       cudnn_graph::kY, cudnn_graph::kBias};
  const std::size_t count = addresses[3] == nullptr ? 3 : 4;
  return cudnn_graph::variant_pack(std::span(kIds).first(count), std::span(addresses).first(count),
                                   workspace);
}

/// The output of the pass.
TunedOutput output_of(const CudnnConvolutions::Key& key,
                      const CudnnConvolutions::Addresses& addresses) {
  switch (key.pass) {
    case Conv2dPass::backward_data:
      return {addresses[0], key.x.count() * size_of(key.dtype), key.beta != 0};
    case Conv2dPass::backward_filter:
      return {addresses[1], key.w.count() * size_of(key.dtype), key.beta != 0};
    case Conv2dPass::forward:
      break;
  }
  return {addresses[2], key.y.count() * size_of(key.dtype), false};
}

/// Whether the filters lie in another order than the tensors.
bool copies_filter(const CudnnConvolutions::Key& key) {
  return key.layout != key.filter && !is_alike_in_nhwc(key.w);
}

/// What cuDNN is asked. The gradient of copied filters is added to the old one as it is copied
/// back.
CudnnConvolutions::Key asked(const CudnnConvolutions::Key& key) {
  CudnnConvolutions::Key plain = key;
  if (key.pass != Conv2dPass::backward_filter) return plain;
  if (copies_filter(key)) plain.beta = 0;
  plain.widened = key.widened || is_narrow(key.dtype);
  plain.dtype = DType::f32;
  return plain;
}

cudnnHandle_t create_cudnn_handle(const CudaStream& stream) {
  stream.handle();  // makes the device current: the library's handle belongs to it
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnn().cudnnCreate(&handle), "cudnnCreate");
  return handle;
}

CudnnConvolutions::Addresses with_copies(CudnnConvolutions::Addresses addresses,
                                         const CudnnConvolutions::Addresses& copies) {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (copies[i] != nullptr) addresses[i] = copies[i];
  }
  return addresses;
}

/// Makes the graph, with the convolution's name in what it throws.
Conv2dGraph make_graph(cudnnHandle_t handle, const CudnnConvolutions::Key& key) {
  try {
    return {{.handle = handle}, key};
  } catch (const DeviceError& error) {
    throw DeviceError(describe(key) + ": " + error.what(), error.where());
  }
}

}  // namespace

CudnnConvolutions::CudnnConvolutions(CudaStream& stream)
    : stream_(stream), handle_(create_cudnn_handle(stream), cudnn().cudnnDestroy) {
  follow_stream();
}

void CudnnConvolutions::follow_stream() {
  check_cudnn(cudnn().cudnnSetStream(handle_.get(), stream_.handle()), "cudnnSetStream");
}

/// `key`: what cuDNN is asked.
CudnnConvolutions::Scratch CudnnConvolutions::scratch_for(const Key& key,
                                                          std::int64_t workspace_bytes) {
  const auto bytes_of = [&](const Shape& shape, bool is_copied) {
    constexpr std::int64_t kAlignment = 256;  // no kernel wants more
    const std::int64_t bytes = is_copied ? shape.count() * size_of(key.dtype) : 0;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  const std::array<std::int64_t, 3> bytes = {bytes_of(key.x, key.widened),
                                             bytes_of(key.w, copies_filter(key)),
                                             bytes_of(key.y, key.widened)};
  const std::int64_t front = bytes[0] + bytes[1] + bytes[2];
  if (front + workspace_bytes == 0) return {};
  auto* at = static_cast<std::byte*>(stream_.workspace(front + workspace_bytes));
  Scratch scratch;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0) scratch.copies[i] = at;
    at += bytes[i];
  }
  if (workspace_bytes > 0) scratch.workspace = at;
  return scratch;
}

std::size_t CudnnConvolutions::choose(const Key& key, const std::vector<Plan>& plans,
                                      const Addresses& addresses) {
  std::int64_t workspace = 0;  // one for all: a larger one would be another address
  for (const Plan& plan : plans) workspace = std::max(workspace, plan.workspace);
  const Scratch scratch = scratch_for(key, workspace);
  const Addresses used = with_copies(addresses, scratch.copies);
  const Descriptor pack = make_pack(used, scratch.workspace);
  const int best =
      fastest(stream_, static_cast<int>(plans.size()), output_of(key, used), [&](int candidate) {
        const Plan& plan = plans[static_cast<std::size_t>(candidate)];
        return cudnn().cudnnBackendExecute(handle_.get(), plan.descriptor.handle(),
                                           pack.handle()) == CUDNN_STATUS_SUCCESS;
      });
  return static_cast<std::size_t>(best);
}

CudnnConvolutions::Entry CudnnConvolutions::make_entry(const Key& key, const Addresses& addresses) {
  const bool tuned = may_autotune(stream_);
  stream_.handle();  // plans are made for the current device
  Entry entry{make_graph(handle_.get(), key), std::nullopt, {}, false, {}};
  std::vector<Plan> plans = cudnn_graph::find_plans(
      {.handle = handle_.get()}, entry.graph, modes(tuned),
      {stream_.tf32(), stream_.deterministic(), stream_.device().scratch_limit()},
      tuned ? kCandidates : 1, entry.why_not);
  if (!plans.empty()) {
    const std::size_t best = plans.size() == 1 ? 0 : choose(key, plans, addresses);
    if (key.activation == Activation::relu && !keeps_nan(key, plans[best])) {
      entry.why_not = "the engine's ReLU loses NaN";
      return entry;
    }
    entry.plan = std::move(plans[best]);
    entry.is_naive =
        key.pass == Conv2dPass::backward_filter && is_naive_filter_gradient(*entry.plan);
    entry.packs.reserve(kPacks);
    const bool is_used = !entry.is_naive || !stream_.deterministic();  // conv2d_backward_filter
    if (is_used && stream_.notes() != nullptr) {
      stream_.notes()->push_back(cudnn_graph::describe(key, *entry.plan));
    }
  }
  return entry;
}

bool CudnnConvolutions::keeps_nan(const Key& key, const Plan& plan) {
  const std::array<std::int64_t, 3> counts = {key.x.count(), key.w.count(), key.w[0]};
  return lets_nan_through(
      stream_, std::span(counts).first(key.bias ? 3 : 2), {key.y.count(), key.dtype},
      [&](std::span<void* const> inputs, void* output) {
        const Addresses addresses = {inputs[0], inputs[1], output, key.bias ? inputs[2] : nullptr};
        const Descriptor pack = make_pack(addresses, scratch_for(key, plan.workspace).workspace);
        stream_.handle();  // makes the device current
        return cudnn().cudnnBackendExecute(handle_.get(), plan.descriptor.handle(),
                                           pack.handle()) == CUDNN_STATUS_SUCCESS;
      });
}

const Descriptor& CudnnConvolutions::pack(Entry& entry, const Addresses& addresses,
                                          void* workspace) {
  for (const Pack& known : entry.packs) {
    if (known.addresses == addresses && known.workspace == workspace) return known.descriptor;
  }
  Pack pack{addresses, workspace, make_pack(addresses, workspace)};
  if (entry.packs.size() < kPacks) return entry.packs.emplace_back(std::move(pack)).descriptor;
  Pack& replaced = entry.packs[entry.oldest];
  replaced = std::move(pack);
  entry.oldest = (entry.oldest + 1) % kPacks;
  return replaced.descriptor;
}

CudnnConvolutions::Entry& CudnnConvolutions::find(const Key& key, const Addresses& addresses) {
  return entries_.find_or(key, [&] { return make_entry(key, addresses); });
}

void CudnnConvolutions::execute(Entry& entry, const Key& key, const Addresses& addresses) {
  const Key plain = asked(key);
  const Scratch scratch = scratch_for(plain, entry.plan->workspace);
  const Addresses used = with_copies(addresses, scratch.copies);
  if (plain.widened) {
    const ConstView x(addresses[0], key.x, key.dtype, key.layout);
    const ConstView y(addresses[2], key.y, key.dtype, key.layout);
    impl::cast_pair(stream_, x, View(used[0], key.x, plain.dtype, key.layout), y,
                    View(used[2], key.y, plain.dtype, key.layout));
  }
  const View filter(addresses[1], key.w, plain.dtype, key.filter);
  const View copy(used[1], key.w, plain.dtype, key.layout);
  const bool is_copied = scratch.copies[1] != nullptr;
  const bool is_result = key.pass == Conv2dPass::backward_filter;
  if (is_copied && !is_result) impl::change_channels(stream_, filter, 0, copy);
  launch(entry, plain, used, scratch.workspace);
  if (is_copied && is_result) impl::change_channels(stream_, copy, key.beta, filter);
}

void CudnnConvolutions::launch(Entry& entry, const Key& key, const Addresses& addresses,
                               void* workspace) {
  const Descriptor& variant_pack = pack(entry, addresses, workspace);
  stream_.handle();  // makes the device current
  const cudnnStatus_t status = cudnn().cudnnBackendExecute(
      handle_.get(), entry.plan->descriptor.handle(), variant_pack.handle());
  if (status != CUDNN_STATUS_SUCCESS) {
    throw DeviceError(describe(key) + ": cudnnBackendExecute failed: " + explain(status) +
                      kLookAtVersions);
  }
}

bool CudnnConvolutions::try_run(const Key& key, const Addresses& addresses) {
  Entry& entry = find(asked(key), addresses);
  if (!entry.plan) return false;
  execute(entry, key, addresses);
  return true;
}

bool CudnnConvolutions::sums_filters_fast(const Key& key, const Addresses& addresses) {
  const Entry& entry = find(asked(key), addresses);
  return entry.plan && !entry.is_naive;
}

void CudnnConvolutions::run(const Key& key, const Addresses& addresses) {
  if (try_run(key, addresses)) return;
  throw DeviceError(describe(key) +
                    ": cuDNN has no engine for it: " + find(asked(key), addresses).why_not +
                    "; leave --deterministic out, or use --device cpu");
}

}  // namespace ringlet
