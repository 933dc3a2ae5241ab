// A model measured on pairs: its own outputs by a Predictor, whatever the number of ranks.
#include "train/verify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/data_error.h"
#include "comm/transport/local/local_transport.h"
#include "data/images/resample.h"
#include "data/pair_images.h"
#include "kernels/device.h"
#include "tests/support/files.h"
#include "tests/support/pickles.h"
#include "tests/support/pictures.h"
#include "tests/train/runs.h"
#include "train/loop/predictor.h"
#include "train/sync/transport_choice.h"
#include "train/trainer.h"

namespace ringlet::train {
namespace {

using data::PairImages;

/// A picture that depends on its number and on nothing else.
data::Image drawn(int number, int width, int height, int channels) {
  data::Image image = testing::gradient_image(width, height, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(image.pixels[i] * (1 + number % 5) +
                                                i * static_cast<std::size_t>(number) / 7);
  }
  return image;
}

class Verify : public ::testing::Test {
 protected:
  /// Pairs of pictures 2k and 2k + 1.
  std::shared_ptr<const data::Pairs> pairs(int count, int side, int channels = 1) const {
    std::vector<std::string> pictures;
    std::vector<bool> same;
    for (int i = 0; i < 2 * count; ++i) {
      pictures.push_back(testing::as_pnm(drawn(i, side, side, channels)));
    }
    for (int i = 0; i < count; ++i) same.push_back(i % 3 != 1);
    testing::write_file(folder_ / "set.bin", testing::pickled_pairs(pictures, same));
    return data::open_pairs(folder_ / "set.bin");
  }

  /// LeNet for grey images of 28 x 28, after a step.
  std::filesystem::path model() const {
    TrainOptions options = plain_options(1);
    options.files.out = folder_ / "run";
    std::filesystem::create_directory(options.files.out);
    options.max_steps = 1;
    run(options, formula_splits(64));
    return folder_ / "run/model.safetensors";
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(Verify, ImagesAreBothOfAPairAndMirrored) {
  const auto of = pairs(3, 6, 3);
  const PairImages images(of, {2, 0}, {.channels = 3, .height = 6, .width = 6});
  ASSERT_EQ(images.size(), 8);
  const int numbers[] = {4, 4, 5, 5, 0, 0, 1, 1};
  for (int i = 0; i < 8; ++i) {
    const data::Image expected = drawn(numbers[i], 6, 6, 3);
    const std::vector<std::uint8_t> planes = images.image(i);
    for (int p = 0; p < 108; ++p) {
      const int column = i % 2 == 0 ? p % 6 : 5 - p % 6;
      const int pixel = p / 6 % 6 * 6 + column;
      ASSERT_EQ(planes[static_cast<std::size_t>(p)],
                expected.pixels[static_cast<std::size_t>(3 * pixel + p / 36)])
          << i << " " << p;
    }
  }
  const PairImages once(of, {1}, {.channels = 3, .height = 6, .width = 6, .mirrored = false});
  EXPECT_EQ(once.size(), 2);
  EXPECT_EQ(once.image(1), PairImages(of, {1}, {.channels = 3, .height = 6, .width = 6}).image(2));
}

TEST_F(Verify, ImagesOfAnotherSizeAreCovered) {
  testing::write_file(folder_ / "wide.ppm", testing::as_pnm(drawn(3, 30, 20, 3)));
  testing::write_file(folder_ / "high.ppm", testing::as_pnm(drawn(3, 20, 30, 3)));
  testing::write_file(folder_ / "p.txt", "wide.ppm\thigh.ppm\t1\n");
  const PairImages images(data::open_pairs(folder_ / "p.txt"), {0},
                          {.channels = 3, .height = 10, .width = 10, .mirrored = false});
  // 30 x 20 becomes 15 x 10, of which columns 2 to 11 are seen.
  data::Resampler resampler;
  for (const bool wide : {true, false}) {
    const data::Image image = wide ? drawn(3, 30, 20, 3) : drawn(3, 20, 30, 3);
    std::vector<std::uint8_t> rgbx, expected(300);
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
      for (std::size_t c = 0; c < 3; ++c) rgbx.push_back(image.pixels[i + c]);
      rgbx.push_back(0);
    }
    const int width = wide ? 30 : 20, height = wide ? 20 : 30;
    resampler.resize({rgbx.data(), width, height, 4 * width}, width / 2, height / 2,
                     {wide ? 2 : 0, wide ? 0 : 2, 10, 10}, {expected.data()});
    EXPECT_EQ(images.image(wide ? 0 : 1), expected);
  }
}

TEST_F(Verify, GreyIsPillowsLuma) {
  testing::write_file(folder_ / "a.ppm", "P6\n2 1\n255\n\xff\x01\x02\x10\xc0\x7f");
  testing::write_file(folder_ / "p.txt", "a.ppm\ta.ppm\t1\n");
  const PairImages images(data::open_pairs(folder_ / "p.txt"), {0},
                          {.channels = 1, .height = 1, .width = 2, .mirrored = true});
  EXPECT_EQ(images.image(0), (std::vector<std::uint8_t>{77, 132}));
  EXPECT_EQ(images.image(1), (std::vector<std::uint8_t>{132, 77}));
}

/// Options of so many ranks as threads.
Execution on(int ranks) {
  Execution execution;
  execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  return execution;
}

TEST_F(Verify, FiguresAreThoseOfTheModelsOutputs) {
  const std::filesystem::path file = model();
  const auto set = pairs(30, 28);
  const std::optional<ModelInfo> info = read_model_info(file);
  const auto device = open_device(DeviceId{}, {});
  Predictor predictor(*device, file);
  for (const Flip flip : {Flip::sum, Flip::none}) {
    const bool both = flip == Flip::sum;
    std::vector<double> embeddings;
    double lengths = 0;
    for (int i = 0; i < 60; ++i) {
      const data::Image image = drawn(i, 28, 28, 1);
      std::vector<std::uint8_t> mirrored;
      for (int p = 0; p < 784; ++p) {
        mirrored.push_back(image.pixels[static_cast<std::size_t>(p / 28 * 28 + 27 - p % 28)]);
      }
      const std::vector<float> outputs = predictor.logits(image.pixels);
      const std::vector<float> others = predictor.logits(mirrored);
      for (std::size_t c = 0; c < outputs.size(); ++c) {
        embeddings.push_back(double{outputs[c]} + (both ? double{others[c]} : 0));
      }
      for (const auto* pass : {&outputs, &others}) {
        if (!both && pass == &others) continue;
        double squares = 0;
        for (const float value : *pass) squares += double{value} * double{value};
        lengths += std::sqrt(squares) / (both ? 120 : 60);
      }
    }
    Lengths unused;
    const std::vector<double> distances =
        pair_distances(embeddings, std::ssize(embeddings) / 60, unused);
    const VerificationFigures expected = figures_of(distances, set->same());
    const Execution execution = on(1);
    comm::LocalGroup group = threads_of(execution);
    const auto results = verify(group, decided(execution), file, *info, {set, set}, {.flip = flip});
    ASSERT_EQ(results.size(), 2U);
    for (const Verified& result : results) {
      EXPECT_EQ(result.name, set->file()) << "one of two alike";
      EXPECT_NEAR(result.mean_length, lengths, 1e-5 * lengths);
      for (std::size_t i = 0; i < distances.size(); ++i) {
        EXPECT_NEAR(result.distances[i], distances[i], 1e-5);
      }
      EXPECT_NEAR(result.figures.grid.mean, expected.grid.mean, 0.05);
      EXPECT_EQ(result.figures.same, 20);
    }
  }
}

TEST_F(Verify, FiguresAreTheSameForAnyNumberOfRanks) {
  const std::filesystem::path file = model();
  const auto set = pairs(130, 28), small = pairs(2, 28);
  const std::optional<ModelInfo> info = read_model_info(file);
  std::vector<std::vector<Verified>> all;
  for (const int ranks : {1, 2, 3}) {
    const Execution execution = on(ranks);
    comm::LocalGroup group = threads_of(execution);
    all.push_back(verify(group, decided(execution), file, *info, {set, small}));
  }
  for (const auto& results : all) {
    for (std::size_t s = 0; s < 2; ++s) {
      EXPECT_EQ(results[s].distances, all[0][s].distances);
      EXPECT_EQ(results[s].mean_length, all[0][s].mean_length);
      EXPECT_EQ(results[s].figures.grid.mean, all[0][s].figures.grid.mean);
    }
    EXPECT_NE(results[0].distances[129], 0);
  }
}

TEST_F(Verify, EndsWhereItIsStoppedAndNamesWhatCannotBeRead) {
  const std::filesystem::path file = model();
  const std::optional<ModelInfo> info = read_model_info(file);
  const Execution execution = on(2);
  const auto verify_on = [&](const std::shared_ptr<const data::Pairs>& set,
                             const VerifyOptions& options) {
    comm::LocalGroup group = threads_of(execution);
    verify(group, decided(execution), file, *info, {set}, options);
  };
  EXPECT_THROW(verify_on(pairs(200, 28), {.stop_requested = [] { return true; }}), Stopped);
  const std::string pgm = testing::as_pnm(drawn(1, 28, 28, 1));
  testing::write_file(folder_ / "b.bin", testing::pickled_pairs({pgm, pgm.substr(0, 500)}, {true}));
  EXPECT_TRUE(testing::says(
      testing::message_of<Error>([&] { verify_on(data::open_pairs(folder_ / "b.bin"), {}); }),
      {"b.bin: picture 1"}));
}

}  // namespace
}  // namespace ringlet::train
