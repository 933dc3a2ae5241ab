#include "kernels/cuda/cublas_matmuls.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/cuda/autotune.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/nan_probe.h"
#include "kernels/cuda/views.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

constexpr std::int64_t kWorkspaceLimit = 32 << 20;  // bytes; what NVIDIA recommends for Hopper

/// No preference says where a bias lies, and kernels load it in words of 16 bytes.
bool may_be_bias(const float* bias) {
  constexpr std::int64_t kBytes = 16;
  return alignment_of(bias, kBytes) == kBytes;
}

/// As check_cublas(), with the sizes in the message.
void check_matmul(cublasStatus_t status, const char* call, const MatmulSize& size) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string(call) + " failed for a product of " + std::to_string(size.m) + "x" +
                    std::to_string(size.k) + " by " + std::to_string(size.k) + "x" +
                    std::to_string(size.n) + ": " + explain(status) + kLookAtVersions);
}

/// Of a result in f32 that is in front of the library's own scratch memory.
std::int64_t scratch_bytes(const MatmulSize& size) {
  constexpr std::int64_t kAlignment = 256;  // no kernel wants more
  const std::int64_t bytes = size.m * size.n * size_of(DType::f32);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

cublasLtHandle_t create_handle(const CudaStream& stream) {
  stream.handle();  // makes the device current: the library's handle belongs to it
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublas_lt().cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}

}  // namespace

CublasMatmuls::CublasMatmuls(CudaStream& stream)
    : stream_(stream), handle_(create_handle(stream), cublas_lt().cublasLtDestroy) {}

cublasStatus_t CublasMatmuls::find_candidates(const MatmulKey& key,
                                              const MatmulDescriptors& descriptors,
                                              Candidates& candidates, int& found) const {
  const MatmulPreference preference(key, kWorkspaceLimit, stream_.deterministic());
  found = 0;
  const cublasStatus_t status = cublas_lt().cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), descriptors.operation(), descriptors.a(), descriptors.b(), descriptors.d(),
      descriptors.d(), preference.handle(), static_cast<int>(candidates.size()), candidates.data(),
      &found);
  const auto end =
      std::remove_if(candidates.begin(), candidates.begin() + found,
                     [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  found = static_cast<int>(end - candidates.begin());
  return status == CUBLAS_STATUS_SUCCESS && found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

CublasMatmuls::Plan CublasMatmuls::make_plan(const MatmulKey& key, const Matmul& matmul,
                                             const float* bias, float beta) {
  Plan whole = make_whole_plan(key, matmul, bias, beta);
  const bool has_relu = (key.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
  if (!has_relu || keeps_nan(whole, key)) return whole;
  MatmulKey without = key;
  without.epilogue = bias == nullptr ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BIAS;
  Plan plan = make_whole_plan(without, matmul, bias, beta);
  plan.relu_apart = true;
  return plan;
}

bool CublasMatmuls::keeps_nan(Plan& plan, const MatmulKey& key) {
  const MatmulSize& size = key.size;
  const std::array<std::int64_t, 3> counts = {size.m * size.k, size.k * size.n, size.m};
  const bool has_bias = key.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  return lets_nan_through(
      stream_, std::span(counts).first(has_bias ? 3 : 2), {size.m * size.n, key.result},
      [&](std::span<void* const> inputs, void* output) {
        if (has_bias) plan.descriptors.set_bias(static_cast<const float*>(inputs[2]));
        const Matmul probe{size, inputs[0], inputs[1], output, key.factors, key.result};
        return launch(plan.descriptors, plan.algorithm, probe, 0) == CUBLAS_STATUS_SUCCESS;
      });
}

bool CublasMatmuls::bias_gradient_keeps_nan(Plan& plan, const MatmulKey& key) {
  const MatmulSize& size = key.size;
  const std::array<std::int64_t, 3> counts = {size.m * size.k, size.k * size.n, size.m * size.n};
  return lets_nan_through(stream_, counts, {size.n}, [&](std::span<void* const> inputs, void* db) {
    plan.descriptors.set_bias(static_cast<const float*>(db));
    const Matmul probe{size, inputs[0], inputs[1], inputs[2], key.factors, key.result};
    return launch(plan.descriptors, plan.algorithm, probe, 0) == CUBLAS_STATUS_SUCCESS;
  });
}

CublasMatmuls::Plan CublasMatmuls::make_whole_plan(const MatmulKey& key, const Matmul& matmul,
                                                   const float* bias, float beta) {
  cublasStatus_t why_not = CUBLAS_STATUS_SUCCESS;
  std::optional<Plan> plan = find_whole_plan(key, matmul, bias, beta, why_not);
  check_matmul(why_not, "cublasLtMatmulAlgoGetHeuristic", key.size);
  return std::move(*plan);
}

std::optional<CublasMatmuls::Plan> CublasMatmuls::find_whole_plan(const MatmulKey& key,
                                                                  const Matmul& matmul,
                                                                  const float* bias, float beta,
                                                                  cublasStatus_t& why_not) {
  stream_.handle();  // the heuristic asks the current device
  MatmulDescriptors descriptors(key, stream_.tf32());
  if (bias != nullptr) descriptors.set_bias(bias);
  Candidates candidates{};
  int found = 0;
  why_not = find_candidates(key, descriptors, candidates, found);
  if (why_not != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  std::size_t best = 0;
  if (found > 1 && may_autotune(stream_)) {
    const std::int64_t bytes = key.size.m * key.size.n * size_of(key.result);
    best = static_cast<std::size_t>(
        fastest(stream_, found, {matmul.d, bytes, beta != 0}, [&](int candidate) {
          const auto& algorithm = candidates[static_cast<std::size_t>(candidate)];
          return launch(descriptors, algorithm, matmul, beta) == CUBLAS_STATUS_SUCCESS;
        }));
  }
  return Plan{std::move(descriptors), candidates[best], false};
}

cublasStatus_t CublasMatmuls::launch(const MatmulDescriptors& descriptors,
                                     const cublasLtMatmulHeuristicResult_t& algorithm,
                                     const Matmul& matmul, float beta) {
  const float one = 1;
  const auto workspace_bytes = static_cast<std::int64_t>(algorithm.workspaceSize);
  const std::int64_t front = matmul.d == nullptr ? scratch_bytes(matmul.size) : 0;
  const std::int64_t scratch_size = front + workspace_bytes;
  auto* const scratch =
      scratch_size == 0 ? nullptr : static_cast<std::byte*>(stream_.workspace(scratch_size));
  void* const workspace = workspace_bytes == 0 ? nullptr : scratch + front;
  void* const d = matmul.d == nullptr ? scratch : matmul.d;
  return cublas_lt().cublasLtMatmul(handle_.get(), descriptors.operation(), &one, matmul.a,
                                    descriptors.a(), matmul.b, descriptors.b(), &beta, d,
                                    descriptors.d(), d, descriptors.d(), &algorithm.algo, workspace,
                                    algorithm.workspaceSize, stream_.handle());
}

bool CublasMatmuls::try_run_with_bias_gradient(const Matmul& matmul, float beta, float* db) {
  if (!may_be_bias(db)) return false;
  const MatmulKey key = matmul_key_with_bias_gradient(matmul);
  std::optional<Plan>& plan = plans_with_bias_gradient_.find_or(key, [&] {
    cublasStatus_t why_not = CUBLAS_STATUS_SUCCESS;
    std::optional<Plan> found = find_whole_plan(key, matmul, db, beta, why_not);
    if (found && !bias_gradient_keeps_nan(*found, key)) found.reset();
    return found;
  });
  if (!plan) return false;
  plan->descriptors.set_bias(db);
  check_matmul(launch(plan->descriptors, plan->algorithm, matmul, beta), "cublasLtMatmul",
               key.size);
  return true;
}

View CublasMatmuls::result_of(const Matmul& matmul) {
  void* const d = matmul.d == nullptr ? stream_.workspace(scratch_bytes(matmul.size)) : matmul.d;
  return {d, {matmul.size.n, matmul.size.m}, matmul.result};
}

void CublasMatmuls::run(const Matmul& matmul, const float* bias, Activation activation,
                        float beta) {
  if (bias == nullptr || !is_narrow(matmul.result)) {
    return run_plan(matmul, bias, activation, beta);
  }
  // cuBLASLt adds a bias of the result's type only (CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), and ours
  // are f32. So the whole result is, and is rounded once, behind it.
  Matmul wide = matmul;
  wide.d = nullptr;
  wide.result = DType::f32;
  run_plan(wide, bias, activation, beta);
  const View sum = result_of(wide);
  impl::cast(stream_, sum, View(matmul.d, sum.shape(), matmul.result));
}

void CublasMatmuls::run_plan(const Matmul& matmul, const float* bias, Activation activation,
                             float beta) {
  if (!may_be_bias(bias)) {
    run_plan(matmul, nullptr, Activation::none, beta);
    const View y = result_of(matmul);
    impl::bias_forward(stream_, y, ConstView(bias, {matmul.size.m}), y);
    if (activation == Activation::relu) impl::relu_forward(stream_, y, y);
    return;
  }
  const MatmulKey key = matmul_key(matmul, bias != nullptr, activation);
  Plan& plan = plans_.find_or(key, [&] { return make_plan(key, matmul, bias, beta); });
  if (bias != nullptr) plan.descriptors.set_bias(bias);
  check_matmul(launch(plan.descriptors, plan.algorithm, matmul, beta), "cublasLtMatmul", key.size);
  if (!plan.relu_apart) return;
  const View y = result_of(matmul);
  impl::relu_forward(stream_, y, y);
}

}  // namespace ringlet
