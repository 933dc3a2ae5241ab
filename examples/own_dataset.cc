// A data set made from one's own numbers, trained by the library's trainer on two replicas.
//
// The numbers: images of 8 x 8 that show waves running in one of four directions, with noise.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "data/memory_dataset.h"
#include "train/trainer.h"

using namespace ringlet;

std::shared_ptr<const data::Dataset> make_waves(const char* name, int count, unsigned seed) {
  constexpr int kSide = 8;
  constexpr double kAcross[][2] = {{0, 1}, {1, 0}, {0.7, 0.7}, {0.7, -0.7}};
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> phase(0, 6.28), noise(-90, 90);
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    const auto& [down, right] = kAcross[i % 4];
    const double start = phase(random);
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const double wave = 128 + 35 * std::sin(1.5 * (down * y + right * x) + start);
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(wave + noise(random), 0.0, 255.0)));
      }
    }
    labels.push_back(i % 4);
  }
  return std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{.name = name,
                        .channels = 1,
                        .height = kSide,
                        .width = kSide,
                        .class_names = {"upright", "level", "falling", "rising"}},
      std::move(pixels), std::move(labels));
}

class Printer : public train::RunListener {
 public:
  void epoch_done(const train::EpochReport& report) override {
    std::printf("epoch %ld  train loss %.4f  test accuracy %.1f %%\n", report.epoch,
                report.train_loss, 100 * report.test.accuracy());
  }
};

int main() {
  const data::Splits waves{.train = make_waves("waves/train", 2000, 1),
                           .test = make_waves("waves/test", 400, 2)};
  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.data = "waves";
  options.recipe.batch_size = 50;
  options.recipe.epochs = 4;
  options.execution.devices.resize(2);  // cpu:0 twice

  Printer printer;
  train::RunListener* listeners[] = {&printer};
  const train::RunResult result = train::train(make_run_setup(options, waves, 2), listeners);
  return result.test.accuracy() > 0.9 ? 0 : 1;
}
