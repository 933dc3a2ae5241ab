// An autoencoder: images are squeezed through eight numbers, and found again from these. The
// targets are the images themselves.
#include <cstdio>

#include "nn/ops/pointwise_loss.h"
#include "ringlet.h"

using namespace ringlet;

class Itself final : public train::Task {
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch[nn::kImages], sum);
  }
};

class Printer final : public train::RunListener {
 public:
  void epoch_done(const train::EpochReport& report) override {
    std::printf("epoch %ld  train loss %.4f  test loss %.4f\n", report.epoch, report.train_loss,
                report.test.loss);
  }
};

int main() {
  const data::Splits garments =
      data::open_dataset("synthetic", {.synthetic_train = 2000, .synthetic_test = 400});
  train::TrainOptions options;
  options.recipe.model = "autoencoder";
  options.recipe.batch_size = 50;
  options.recipe.epochs = 4;
  options.recipe.optimizer = "adamw";
  options.recipe.lr = 2e-3;
  options.execution.devices.resize(2);
  options.task = std::make_shared<const Itself>();
  options.make_model = [](const nn::ModelInput& images) {
    const int pixels = images.channels * images.height * images.width;
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("encode", pixels, 8);
    net->add<nn::Sigmoid>("sigmoid");
    net->add<nn::Linear>("decode", 8, pixels);
    return net;
  };
  Printer printer;
  train::RunListener* listeners[] = {&printer};
  const train::RunResult result = train::train(make_run_setup(options, garments, 2), listeners);
  return result.test.loss < 0.6 ? 0 : 1;  // pixels have the variance 1
}
