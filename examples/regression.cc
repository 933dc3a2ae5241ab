// A task of one's own: prices of houses from two inputs, their rooms and their location,
// by mean squared error, with a figure of its own. It trains on two replicas, stops, goes on, and
// writes the same bytes in exact mode on one replica and on two.
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "kernels/elementwise.h"
#include "kernels/pointwise_loss.h"
#include "nn/ops/concat.h"
#include "nn/ops/pointwise_loss.h"
#include "ringlet.h"
#include "train/files/state.h"

using namespace ringlet;

class Prices final : public train::Task {
  std::string name() const override { return "prices"; }
  nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override {
    return model.forward(tape, nn::concat({batch.input("rooms"), batch.input("location")}));
  }
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch["price"], sum);
  }
  train::MetricSpec metric() const override { return {.numbers = 2}; }
  void measure(Stream& stream, const nn::Variable& output, const nn::Batch& batch,
               const View& numbers) const override {  // their sum, and that of a guess of 0
    const ConstView price = batch["price"].value();
    pointwise_loss_forward(stream, PointwiseLoss::squared_error, output.value(), price,
                           numbers.slice(0, 1));
    const Tensor zero(stream.device(), price.shape());
    fill(stream, 0, zero);
    pointwise_loss_forward(stream, PointwiseLoss::squared_error, zero, price, numbers.slice(1, 2));
  }
  void summarize(std::span<const double> sums, train::Evaluation& evaluation) const override {
    evaluation.figures = {{"explained", 1 - sums[0] / sums[1]}};
  }
};

std::shared_ptr<const data::Dataset> houses(const char* name, int count, int first) {
  std::vector<float> rooms, location, price;
  for (int i = first; i < first + count; ++i) {
    const float a = std::sin(1.3F * i), b = std::cos(2.1F * i), x = std::sin(0.7F * i);
    rooms.insert(rooms.end(), {a, b});
    location.push_back(x);
    price.push_back(a * b + 0.5F * x);
  }
  return std::make_shared<const data::FieldDataset>(
      name, std::vector<data::Field>{
                {"rooms", {2}, rooms}, {"location", {1}, location}, {"price", {1}, price}});
}

std::unique_ptr<nn::Layer> make_model(const nn::ModelInput&) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>("fc1", 3, 32);
  net->add<nn::Tanh>("tanh");
  net->add<nn::Linear>("fc2", 32, 1);
  return net;
}

/// Trains up to `steps` on `replicas`, from a state that is there already; says what is explained.
double run(const data::Splits& data, const std::filesystem::path& out, int replicas,
           std::int64_t steps, bool exact) {
  train::TrainOptions options;
  options.recipe.model = "prices";
  options.recipe.batch_size = 64;
  options.recipe.epochs = 40;
  options.recipe.momentum = 0.9;
  options.recipe.exact = exact;
  options.execution.sync = exact ? "doubling" : "auto";
  options.execution.devices.resize(replicas);
  options.files.out = out;
  options.make_model = make_model;
  options.task = std::make_shared<const Prices>();
  options.max_steps = steps;
  create_directories(out);
  std::optional<train::SavedState> resumed;
  if (exists(out / "state")) resumed = train::read_state(out);
  const auto setup = make_run_setup(options, data, replicas, std::move(resumed));
  train::train(setup, {});
  return evaluate(setup, out / "model.safetensors").figures.front().value;
}

int main() {
  const data::Splits data{.train = houses("houses/train", 1000, 0),
                          .test = houses("houses/test", 200, 1000)};
  const auto root = std::filesystem::temp_directory_path() / "ringlet-regression";
  std::filesystem::remove_all(root);
  const double fast = run(data, root / "fast", 2, -1, false);
  run(data, root / "two", 2, 100, true);                    // stops after a hundred steps
  const double two = run(data, root / "two", 1, -1, true);  // and goes on, on one replica
  const double one = run(data, root / "one", 1, -1, true);
  std::printf("explained: %.4f; exact %.4f, and %.4f without a stop\n", fast, two, one);
  return two == one && two > 0.95 && fast > 0.95 ? 0 : 1;
}
