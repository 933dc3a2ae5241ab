// A folder of photographs, a folder for each class, drawn by formulas.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/files.h"
#include "tests/support/pictures.h"

namespace ringlet::testing {

/// Classes blue, green and red in `root`/train and `root`/test: PNGs of several sizes, `train` and
/// `test` of each class. The class decides which channel is bright.
inline void write_picture_folder(const std::filesystem::path& root, int train = 5, int test = 2) {
  const char* names[] = {"blue", "green", "red"};
  for (const bool training : {true, false}) {
    for (int label = 0; label < 3; ++label) {
      const auto folder = root / (training ? "train" : "test") / names[label];
      std::filesystem::create_directories(folder);
      for (int i = 0; i < (training ? train : test); ++i) {
        data::Image image = gradient_image(24 + 3 * i + label, 20 + 5 * (i % 3), 3);
        for (std::size_t p = 0; p < image.pixels.size(); ++p) {
          const bool bright = static_cast<int>(p % 3) == 2 - label;
          image.pixels[p] = static_cast<std::uint8_t>(image.pixels[p] / 4 + (bright ? 160 : 0) +
                                                      7 * i + (training ? 0 : 3));
        }
        write_file(folder / (std::to_string(i) + ".png"), as_png(image));
      }
    }
  }
}

}  // namespace ringlet::testing
