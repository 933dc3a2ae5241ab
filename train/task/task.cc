#include "train/task/task.h"

#include "base/unsigned_nan.h"

namespace ringlet::train {

nn::Variable Task::output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const {
  return model.forward(tape, batch.input(nn::kImages));
}

void Task::measure(Stream&, const nn::Variable&, const nn::Batch&, const View&) const {}

void Task::summarize(std::span<const double>, Evaluation&) const {}

Evaluation Task::evaluation(double loss, std::int64_t samples,
                            std::span<const double> numbers) const {
  Evaluation result{.loss = unsigned_nan(loss / static_cast<double>(samples)), .samples = samples};
  summarize(numbers, result);
  if (result.classes.empty() && result.figures.empty()) result.figures = {{"loss", result.loss}};
  return result;
}

}  // namespace ringlet::train
