// A short training by a loss with a margin, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/memory_dataset.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"

namespace ringlet::train {

inline constexpr int kSide = 5, kSize = 6;

/// Images that look like their class, with noise. `prefix`: of the classes' names.
inline std::shared_ptr<const data::Dataset> images_of(std::int64_t count, int classes,
                                                      std::uint32_t seed,
                                                      const std::string& prefix = "class ") {
  const auto noise = test::random_floats(count * kSide * kSide, seed, 0, 60);
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::int32_t>((7 * i + 3 * (i / 5)) % classes);
    labels.push_back(label);
    for (int k = 0; k < kSide * kSide; ++k) {
      const int pattern = (k * (label + 2)) % 7 < 3 ? 150 : 0;
      images.push_back(static_cast<std::uint8_t>(
          pattern + noise[static_cast<std::size_t>(i * kSide * kSide + k)]));
    }
  }
  data::DatasetInfo info{
      .name = "patterns", .channels = 1, .height = kSide, .width = kSide, .target_names = {}};
  for (int k = 0; k < classes; ++k) info.target_names.push_back(prefix + std::to_string(k));
  return std::make_shared<const data::MemoryDataset>(info, std::move(images), std::move(labels));
}

inline std::unique_ptr<nn::Layer> make_net(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc1", kSide * kSide, 12);
  net->add<nn::ReLU>("relu");
  net->add<nn::Linear>("fc2", 12, input.outputs);
  return net;
}

/// Splits of 90 training and 30 test samples, and options to train on them.
struct Trial {
  explicit Trial(TrainOptions the_options, int classes = 10)
      : options(std::move(the_options)),
        data{images_of(90, classes, 1), images_of(30, classes, 2)} {
    Recipe& recipe = options.recipe;
    recipe.model = "mlp";    // the name alone
    recipe.batch_size = 40;  // the last one of an epoch has 10
    recipe.epochs = 3;
    recipe.lr = 0.05;
    recipe.loss = "arcface";
    recipe.scale = 8;
    recipe.embedding_size = kSize;
    options.make_model = make_net;
    options.execution.check_replicas = 1;
  }
  Outcome to_the_end(const std::vector<RunListener*>& listeners = {}) {
    return run(options, data, listeners);
  }

  TrainOptions options;
  data::Splits data;
};

/// The bytes of both files of a run.
inline std::string files_of(const std::filesystem::path& out) {
  return testing::read_file(out / "model.safetensors") +
         testing::read_file(out / "centres.safetensors");
}
inline std::string files_of(Trial trial) {
  const testing::TemporaryDirectory folder;
  trial.options.files.out = folder.path();
  trial.to_the_end();
  return files_of(folder.path());
}

inline std::vector<float> centres_in(const std::filesystem::path& out) {
  const SafetensorsFile file(out / "centres.safetensors");
  const auto values = file.f32("weight");
  return {values.begin(), values.end()};
}

inline void expect_losses_near(const std::vector<double>& actual,
                               const std::vector<double>& expected, double most) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], most) << "step " << i;
  }
}

}  // namespace ringlet::train
