#include "train/task/task.h"

#include "base/unsigned_nan.h"
#include "nn/tape.h"

namespace ringlet::train {

nn::Variable Task::output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const {
  return model.forward(tape, batch.input(nn::kImages));
}

nn::Variable Task::answer(const TaskPass& pass) const {
  const nn::Variable answer = output(pass.tape, pass.model, pass.batch);
  require(!answer.absent(), "the model",
          "returns an empty variable; its forward() should return one");
  return answer;
}

nn::Variable Task::run(const TaskPass& pass) const { return run_from(answer(pass), pass); }

nn::Variable Task::run_from(const nn::Variable& answered, const TaskPass& pass) const {
  const nn::Variable of_batch = [&] {
    const nn::Tape::Scope scope(pass.tape, kLossLayer);
    return loss(answered, pass.batch, pass.training, pass.losses);
  }();
  if (!pass.numbers.absent()) measure(pass.tape.stream(), answered, pass.batch, pass.numbers);
  return of_batch;
}

nn::Variable Task::loss(const nn::Variable&, const nn::Batch&, bool, const View&) const {
  throw ContractError("the task " + name() + " has neither a loss() nor a run(); give it one");
}

std::vector<float> Task::weights(const data::Dataset&) const { return {}; }

void Task::measure(Stream&, const nn::Variable&, const nn::Batch&, const View&) const {}

void Task::summarize(std::span<const double>, Evaluation&) const {}

std::vector<Figure> Task::told_of_training(std::span<const double>) const { return {}; }

Evaluation Task::evaluation(double loss, std::int64_t samples,
                            std::span<const double> numbers) const {
  constexpr std::int64_t kUncounted = -1;
  Evaluation result{.loss = unsigned_nan(loss / static_cast<double>(samples)),
                    .samples = samples,
                    .right = kUncounted,
                    .numbers = {numbers.begin(), numbers.end()}};
  summarize(numbers, result);
  if (result.right != kUncounted) return result;
  result.right = 0;
  if (result.figures.empty()) result.figures = {{"loss", result.loss}};
  return result;
}

}  // namespace ringlet::train
