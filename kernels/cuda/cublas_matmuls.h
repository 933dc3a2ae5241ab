// The matrix products of one stream on cuBLASLt, with what it prepared for each size.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "kernels/cuda/cublas_descriptors.h"
#include "kernels/cuda/plan_cache.h"

namespace ringlet {

class CudaStream;

class CublasMatmuls {
 public:
  /// Throws DeviceError where cuBLASLt is missing or cannot use the device.
  explicit CublasMatmuls(CudaStream& stream);

  /// d = activation(beta * d + op(a) op(b) + bias); with beta = 0, d is not read. m, n, k > 0.
  /// `bias` [m], f32, one per row, or null; beside one, beta is 0. The first call for a key
  /// prepares its plan; those after that allocate nothing. Throws DeviceError naming the sizes.
  void run(const Matmul& matmul, const float* bias, Activation activation, float beta);

  /// d = beta * d + op(a) op(b), and db [n] = the sums of op(b) over k, in the same pass. False,
  /// with nothing written, where cuBLASLt has no such epilogue here, it loses NaN (the device is
  /// asked once for a key), or db is not aligned to 16 bytes.
  bool try_run_with_bias_gradient(const Matmul& matmul, float beta, float* db);

 private:
  struct Plan {
    MatmulDescriptors descriptors;
    cublasLtMatmulHeuristicResult_t algorithm{};
    bool relu_apart = false;  // the epilogue has none, since cuBLASLt's loses NaN
  };
  using Candidates = std::array<cublasLtMatmulHeuristicResult_t, 8>;

  void run_plan(const Matmul& matmul, const float* bias, Activation activation, float beta);
  /// d; where that is null, in scratch memory, as long as nothing else asks for some.
  View result_of(const Matmul& matmul);
  Plan make_plan(const MatmulKey& key, const Matmul& matmul, const float* bias, float beta);
  /// With all of the key's epilogue, whatever it does to NaN. Throws where the library has none.
  Plan make_whole_plan(const MatmulKey& key, const Matmul& matmul, const float* bias, float beta);
  /// The same, or none where the library has none; then `why_not` says what it answered.
  std::optional<Plan> find_whole_plan(const MatmulKey& key, const Matmul& matmul, const float* bias,
                                      float beta, cublasStatus_t& why_not);
  bool keeps_nan(Plan& plan, const MatmulKey& key);
  bool bias_gradient_keeps_nan(Plan& plan, const MatmulKey& key);
  /// The heuristic's proposals, best first. Sets how many there are.
  cublasStatus_t find_candidates(const MatmulKey& key, const MatmulDescriptors& descriptors,
                                 Candidates& candidates, int& found) const;
  /// A product without d goes to the front of the stream's workspace.
  cublasStatus_t launch(const MatmulDescriptors& descriptors,
                        const cublasLtMatmulHeuristicResult_t& algorithm, const Matmul& matmul,
                        float beta);

  CudaStream& stream_;
  std::unique_ptr<cublasLtContext, decltype(&cublasLtDestroy)> handle_;
  PlanCache<MatmulKey, Plan> plans_;
  PlanCache<MatmulKey, std::optional<Plan>> plans_with_bias_gradient_;  // none: there is no such
};

}  // namespace ringlet
