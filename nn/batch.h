// Batch: the tensors of one batch on a tape, by name. What a model and a loss are given.
//
//   linear(batch.input("height"), ...)   an input, of the activations' type
//   batch["price"]                       as it is: what the answers are compared with
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/memory.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// The images of a batch, [N, C, H, W], and the whole numbers that say what each sample is, i32
/// [N], where the data have them. Other tensors are f32, row-major, under names of their own.
inline constexpr const char* kImages = "images";
inline constexpr const char* kTargets = "targets";
/// What a loss reads that is the same for each batch: f32 [n].
inline constexpr const char* kConstants = "constants";

/// One tensor of a batch; its first extent is the number of samples.
struct TensorSpec {
  std::string name;
  Shape shape;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;
  bool constant = false;        ///< the same for each batch, whatever its samples
  bool wants_gradient = false;  ///< of the stage before (Tape::input, nn/stages/stages.h)

  /// The tensor's of a batch of `samples`.
  Shape shape_of(std::int64_t samples) const {
    return constant ? shape : shape.with_batch(samples);
  }
};

class Batch {
 public:
  static constexpr std::size_t kMost = 12;

  /// `activations`: what input() casts to.
  explicit Batch(DType activations = DType::f32) : activations_(activations) {}

  /// The name must outlive the batch.
  void add(std::string_view name, const Variable& tensor);
  /// Throws ContractError that names those that there are.
  const Variable& operator[](std::string_view name) const;
  /// The same as f32, bf16 or f16, whatever activations are.
  Variable input(std::string_view name) const;

 private:
  struct Named {
    std::string_view name;
    Variable tensor;
  };
  DType activations_;
  std::array<Named, kMost> tensors_;
  std::size_t count_ = 0;
};

/// What a dry run is told of the largest batch.
struct BatchSpec {
  std::vector<TensorSpec> tensors{};
  DType activations = DType::f32;           ///< see InputSpec, nn/plan.h
  Layout images = Layout::nchw;             ///< decides about that of filters
  std::int64_t memory = Arena::kUnlimited;  ///< see InputSpec
  /// The pass does not end in the loss, but in what the next stage takes: its gradient is like it.
  bool hands_on = false;
  /// A short last batch must fit as well. Not where the bytes are only told: it takes a dry run for
  /// each number of samples.
  bool may_be_shorter = true;
  std::int64_t samples() const { return tensors.empty() ? 0 : tensors.front().shape[0]; }
};

/// Forward: makes the loss, f32 [1], of a batch on a tape.
using Pass = std::function<Variable(Tape& tape, const Batch& batch)>;

}  // namespace ringlet::nn
