// A data set of one's own, by name, trained by the library's trainer on two replicas.
//
// It is not in memory: a sample is made when a loader asks for it, as one would read a photograph
// from a disk. Numbers that are in memory need no class, only a data::MemoryDataset.
//
// The samples: images of 8 x 8 that show waves running in one of four directions, with noise.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "data/open_dataset.h"
#include "train/trainer.h"

using namespace ringlet;

class Waves final : public data::Dataset {
 public:
  Waves(const char* name, int count, unsigned seed)
      : Dataset({.name = name,
                 .channels = 1,
                 .height = kSide,
                 .width = kSide,
                 .target_names = {"upright", "level", "falling", "rising"}},
                labels_of(count)),
        seed_(seed) {}

  /// A function of the seed and the index alone, so that any thread may call it at any time.
  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    std::mt19937 random(1'000'003 * seed_ + static_cast<unsigned>(index));
    std::uniform_real_distribution<double> phase(0, 6.28), noise(-90, 90);
    const auto& [down, right] = kAcross[index % 4];
    const double start = phase(random);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t y = i / kSide, x = i % kSide;
      const double across = down * static_cast<double>(y) + right * static_cast<double>(x);
      const double wave = 128 + 35 * std::sin(1.5 * across + start);
      out[i] = static_cast<std::uint8_t>(std::clamp(wave + noise(random), 0.0, 255.0));
    }
  }

 private:
  static constexpr int kSide = 8;
  static constexpr double kAcross[][2] = {{0, 1}, {1, 0}, {0.7, 0.7}, {0.7, -0.7}};

  static std::vector<std::int32_t> labels_of(int count) {
    std::vector<std::int32_t> labels;
    for (int i = 0; i < count; ++i) labels.push_back(i % 4);
    return labels;
  }

  unsigned seed_;
};

data::Splits open_waves(const data::OpenOptions&) {
  return {.train = std::make_shared<const Waves>("waves/train", 2000, 1),
          .test = std::make_shared<const Waves>("waves/test", 400, 2)};
}

class Printer : public train::RunListener {
 public:
  void epoch_done(const train::EpochReport& report) override {
    std::printf("epoch %ld  train loss %.4f  test accuracy %.1f %%\n", report.epoch,
                report.train_loss, 100 * report.test.accuracy());
  }
};

int main() {
  std::vector<data::NamedDataset> known = data::named_datasets();
  known.push_back({.name = "waves", .open = open_waves});
  const data::Splits waves = data::open_dataset("waves", {}, known);

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
