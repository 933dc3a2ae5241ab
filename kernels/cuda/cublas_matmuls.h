// The matrix products of one stream on cuBLASLt, with what it prepared for each size.
#pragma once

#include <array>
#include <memory>

#include "kernels/cuda/cublas_descriptors.h"
#include "kernels/cuda/plan_cache.h"

namespace ringlet {

class CudaStream;

class CublasMatmuls {
 public:
  /// Throws DeviceError where cuBLASLt is missing or cannot use the device.
  explicit CublasMatmuls(CudaStream& stream);

  /// d = activation(beta * d + op(a) op(b) + bias); with beta = 0, d is not read. m, n, k > 0.
  /// `bias` [m], one per row, or null. The first call for a key prepares its plan; those after that
  /// allocate nothing. Throws DeviceError naming the sizes.
  void run(const Matmul& matmul, const float* bias, Activation activation, float beta);

 private:
  struct Plan {
    MatmulDescriptors descriptors;
    cublasLtMatmulHeuristicResult_t algorithm{};
    bool relu_apart = false;  // the epilogue has none, since cuBLASLt's loses NaN
  };
  using Candidates = std::array<cublasLtMatmulHeuristicResult_t, 8>;

  Plan make_plan(const MatmulKey& key, const Matmul& matmul, const float* bias, float beta);
  /// With all of the key's epilogue, whatever it does to NaN.
  Plan make_whole_plan(const MatmulKey& key, const Matmul& matmul, const float* bias, float beta);
  bool keeps_nan(Plan& plan, const MatmulKey& key);
  /// The heuristic's proposals, best first. Returns how many there are.
  int find_candidates(const MatmulKey& key, const MatmulDescriptors& descriptors,
                      Candidates& candidates) const;
  cublasStatus_t launch(const MatmulDescriptors& descriptors,
                        const cublasLtMatmulHeuristicResult_t& algorithm, const Matmul& matmul,
                        float beta);

  CudaStream& stream_;
  std::unique_ptr<cublasLtContext, decltype(&cublasLtDestroy)> handle_;
  PlanCache<MatmulKey, Plan> plans_;
};

}  // namespace ringlet
