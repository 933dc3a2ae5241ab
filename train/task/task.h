// Task: what a model is trained for: how it answers a batch, the loss, and what is measured.
//
//   class Regression : public Task {
//     nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override;
//     nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool training,
//                       const View& sum) const override {
//       return nn::mean_squared_error(output, batch["price"], sum);
//     }
//   };
//
// A batch is tensors by name: those of the data set's fields, and nn::kImages and nn::kTargets
// where it has them. Everything else (replicas, exact mode, overlap, states, evaluation) goes by
// the task and knows nothing of what it is. One task serves all replicas at once: it is constant.
// Classification is the task of whoever names none (classification.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/stream.h"
#include "nn/batch.h"
#include "nn/layer.h"
#include "train/task/evaluation.h"

namespace ringlet::data {
class Dataset;
}

namespace ringlet::train {

/// The numbers that a task sums up over the samples of an evaluation, on the device.
struct MetricSpec {
  std::int64_t numbers = 0;
  /// i32 counts: exact however they are added, below 2^31 on each rank. f32 numbers are added pass
  /// by pass, then over the passes in their order, so that no bit depends on the number of ranks.
  DType dtype = DType::f32;
};

/// A pass forward of a batch.
struct TaskPass {
  nn::Tape& tape;
  nn::Layer& model;
  const nn::Batch& batch;
  bool training = true;  ///< what is minimised; else what is told of an evaluation
  View losses{};         ///< f32 [1], to which the loss is added; may be absent
  View numbers{};        ///< to which is added what is measured beside it; may be absent
  /// f32 [kTold]: to which a training pass adds what is told of it; may be absent. Where parameters
  /// are cut over ranks, a rank without samples has such a pass as well, of a stand-in.
  View told{};
};

/// The name of the loss among a model's layers, in traces and in the search for broken numbers.
inline const std::string kLossLayer = "loss";

class Task {
 public:
  Task() = default;
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// What all ranks must train for alike: an error names it where they do not. One's own may say
  /// its numbers too: "regression of price".
  virtual std::string name() const { return "one of the program's own"; }

  /// The model's answer to a batch; this one gives the model the images. A model of several inputs
  /// is called here as it wants to be.
  virtual nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const;

  /// The whole pass, up to the loss, which it returns: output() and run_from().
  nn::Variable run(const TaskPass& pass) const;

  /// What run() does behind output(), which gave `answered`: loss(), and measure() where there are
  /// numbers to add to. Of a model in stages, the last stage's part. A task whose loss has
  /// parameters of its own overrides this one, and leaves loss() alone.
  virtual nn::Variable run_from(const nn::Variable& answered, const TaskPass& pass) const;

  /// f32 [1], the sum over the samples; who trains divides by those of the whole world. Added to
  /// `sum`, f32 [1], as well, if that is not absent: the losses take it. `training`: what is
  /// minimised, else what is told of an evaluation.
  virtual nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool training,
                            const View& sum) const;

  /// Numbers that the loss reads, the same for each batch: batch[nn::kConstants], f32 [n], is in
  /// the memory of each device. None.
  virtual std::vector<float> constants() const { return {}; }

  /// What each sample of the training data counts. The mean that is minimised is the loss over the
  /// sum of these, of the samples of a step on all ranks; loss() itself multiplies by them. Empty:
  /// each counts 1, and the mean is over the samples. A Learner is told the sum instead. An
  /// evaluation tells the mean over the samples.
  virtual std::vector<float> weights(const data::Dataset& training) const;

  /// What is measured beside the loss; nothing.
  virtual MetricSpec metric() const { return {}; }
  /// Adds what the batch says to `numbers` [metric().numbers], which are 0 before the first. Where
  /// they are f32 each batch has its own, and they may be overwritten.
  virtual void measure(Stream& stream, const nn::Variable& output, const nn::Batch& batch,
                       const View& numbers) const;
  /// Tells of all samples, of which `numbers` are the sums: fills evaluation.figures, or counts
  /// evaluation.right. Its loss, samples and numbers stand already.
  virtual void summarize(std::span<const double> numbers, Evaluation& evaluation) const;

  /// Whether run_from() looks at images or fields of a batch, and not at its targets and constants
  /// alone. Of a model in stages the last one reads the samples as well, then.
  virtual bool loss_reads_samples() const { return true; }

  /// What each epoch tells of training beside its loss: `sums` [kTold] is what its passes added to
  /// TaskPass::told, over all ranks. The same names for any sums. Nothing.
  virtual std::vector<Figure> told_of_training(std::span<const double> sums) const;

  /// An evaluation of `samples` whose losses add up to `loss`. A task that says nothing more tells
  /// its loss as a figure.
  Evaluation evaluation(double loss, std::int64_t samples, std::span<const double> numbers) const;

 protected:
  /// output(), which is no empty variable.
  nn::Variable answer(const TaskPass& pass) const;
};

}  // namespace ringlet::train
