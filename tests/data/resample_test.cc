// Resampling: Pillow's pixels to the last bit, from any part of a picture, in any window.
#include "data/images/resample.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "data/images/resample_loops.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::data {
namespace {

/// A picture in memory of its own.
struct Noise {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgbx;

  Noise(int w, int h) : width(w), height(h) {
    std::uint32_t i = 0;
    for (int pixel = 0; pixel < w * h; ++pixel) {
      for (int c = 0; c < 3; ++c) rgbx.push_back(static_cast<std::uint8_t>(mix(++i) % 256));
      rgbx.push_back(0x5A);
    }
  }
  static std::uint32_t mix(std::uint32_t v) {  // as tests/oracle/resample.py
    v = (v ^ v >> 16) * 0x7feb352dU;
    v = (v ^ v >> 15) * 0x846ca68bU;
    return v ^ v >> 16;
  }
  RgbxView view() const { return {rgbx.data(), width, height, std::ptrdiff_t{width} * 4}; }
  std::string rgb() const {
    std::string bytes;
    for (std::size_t i = 0; i < rgbx.size(); ++i) {
      if (i % 4 < 3) bytes += static_cast<char>(rgbx[i]);
    }
    return bytes;
  }
};

using PlaneBytes = std::vector<std::uint8_t>;

PlaneBytes resized_planes(const RgbxView& image, int width, int height) {
  PlaneBytes planes(static_cast<std::size_t>(width * height) * 3);
  Resampler().resize(image, width, height, {0, 0, width, height}, {planes.data()});
  return planes;
}

/// [height, width, RGB] as planes.
PlaneBytes as_planes(const std::string& rgb) {
  const std::size_t count = rgb.size() / 3;
  PlaneBytes planes(rgb.size());
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    planes[i % 3 * count + i / 3] = static_cast<std::uint8_t>(rgb[i]);
  }
  return planes;
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

struct ResampleCase {
  int width = 0, height = 0;
  Box crop;
  int to_width = 0, to_height = 0;
  std::string numbers() const {
    std::ostringstream text;
    for (const int n :
         {width, height, crop.left, crop.top, crop.width, crop.height, to_width, to_height}) {
      text << ' ' << n;
    }
    return text.str();
  }
};

TEST(Resample, GivesPillowsPixels) {
  std::istringstream lines(testing::read_file(testing::testdata("oracle/resample.txt")));
  ResampleCase c;
  std::string hex;
  int cases = 0;
  while (lines >> c.width >> c.height >> c.crop.left >> c.crop.top >> c.crop.width >>
         c.crop.height >> c.to_width >> c.to_height >> hex) {
    const Noise noise(c.width, c.height);
    EXPECT_EQ(resized_planes(noise.view().cropped(c.crop), c.to_width, c.to_height),
              as_planes(from_hex(hex)))
        << c.numbers();
    ++cases;
  }
  EXPECT_EQ(cases, 10);
}

TEST(Resample, GivesPillowsPixelsOfThatIsInstalled) {
  const testing::TemporaryDirectory folder;
  const char* named = std::getenv("RINGLET_PYTHON");  // NOLINT(concurrency-mt-unsafe)
  const std::string own = testing::checkout(".deps/python/bin/python");
  const std::string python = named != nullptr               ? named
                             : std::filesystem::exists(own) ? own
                                                            : "python3";
  for (const ResampleCase& c : {ResampleCase{350, 270, {0, 0, 350, 270}, 224, 173},
                                ResampleCase{270, 350, {31, 7, 200, 311}, 224, 224},
                                ResampleCase{40, 31, {0, 0, 40, 31}, 64, 77},
                                ResampleCase{801, 33, {1, 2, 799, 30}, 5, 7}}) {
    const Noise noise(c.width, c.height);
    testing::write_file(folder / "in", noise.rgb());
    const std::string command = python + " " + testing::checkout("tests/oracle/resample.py") + " " +
                                (folder / "in").string() + " " + (folder / "out").string() +
                                c.numbers() + " > /dev/null 2>&1";
    const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 77 || code == 127) GTEST_SKIP() << "Pillow is not installed";
    ASSERT_EQ(code, 0) << command;
    EXPECT_EQ(resized_planes(noise.view().cropped(c.crop), c.to_width, c.to_height),
              as_planes(testing::read_file(folder / "out")))
        << c.numbers();
  }
}

TEST(Resample, AWindowIsThatPartOfTheWhole) {
  const Noise noise(53, 38);
  constexpr int kWidth = 31, kHeight = 24;
  const PlaneBytes whole = resized_planes(noise.view(), kWidth, kHeight);
  const Box window{7, 5, 20, 17};
  PlaneBytes part(std::size_t{20} * 17 * 3), mirrored(part);
  Resampler resampler;
  resampler.resize(noise.view(), kWidth, kHeight, window, {part.data()});
  resampler.resize(noise.view(), kWidth, kHeight, window, {mirrored.data(), 3, true});
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < window.height; ++y) {
      for (int x = 0; x < window.width; ++x) {
        const auto at = [&](int column) {
          return static_cast<std::size_t>((c * window.height + y) * window.width + column);
        };
        const auto from =
            static_cast<std::size_t>((c * kHeight + y + window.top) * kWidth + x + window.left);
        ASSERT_EQ(part[at(x)], whole[from]);
        ASSERT_EQ(mirrored[at(window.width - 1 - x)], whole[from]);
      }
    }
  }
}

TEST(Resample, EveryInstructionSetGivesTheSameBytes) {
  const Noise noise(45, 7);
  ResampleWeights weights;
  find_weights(45, 19, 0, 19, weights);
  const ResampleTaps taps{weights.first.data(), weights.weights.data(), weights.taps};
  std::array<PlaneBytes, 2> across, down;
  const std::array versions{resample_loops_portable(), best_resample_loops()};
  ResampleWeights below;
  find_weights(7, 3, 0, 3, below);
  for (std::size_t i = 0; i < 2; ++i) {
    across[i].resize(std::size_t{19} * 7 * 4);
    versions[i].across({noise.rgbx.data(), 45 * 4, 7}, taps, 19, across[i].data());
    down[i].resize(std::size_t{19} * 4);
    versions[i].down(across[i].data() + std::ptrdiff_t{below.first[1]} * 19 * 4, 19 * 4,
                     below.weights.data() + below.taps, below.taps, down[i].data());
  }
  EXPECT_EQ(across[0], across[1]);
  EXPECT_EQ(down[0], down[1]);
}

}  // namespace
}  // namespace ringlet::data
