// How many pictures a second one processor decodes and resizes:
//
//   pictures_bench FOLDER [ROUNDS]
//
// of all pictures below FOLDER, whose files are read before; and how many random parts it cuts from
// pictures that a cache keeps with --crop-from 256. The best of the rounds counts, by the
// thread's own processor time. bench/peers/pictures.py does the same with Pillow.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/images/centre_crop.h"
#include "data/images/picture_reader.h"

namespace ringlet::bench {

namespace {

using Files = std::vector<std::vector<std::uint8_t>>;

constexpr int kSize = 224;
constexpr int kCropFrom = 256;  // pixels of the shorter side of what --crop-from keeps

Files files_in(const std::filesystem::path& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !data::has_image_name(entry.path())) continue;
    data::read_picture_file(entry.path(), {}, files.emplace_back());
  }
  return files;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best_seconds(int rounds, const std::function<void()>& work) {
  double best = 0;
  for (int i = 0; i < rounds; ++i) {
    const double begin = processor_seconds();
    work();
    const double seconds = processor_seconds() - begin;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

/// A picture as a cache keeps it for random-resized-crop.
struct Kept {
  std::vector<std::uint8_t> planes;
  int height = 0;
  int width = 0;
};

Kept keep(const data::RgbxView& picture, data::Resampler& resampler) {
  const int shorter = std::min(picture.width, picture.height);
  Kept kept{{}, kCropFrom * picture.height / shorter, kCropFrom * picture.width / shorter};
  kept.planes.resize(std::size_t{3} * static_cast<std::size_t>(kept.height * kept.width));
  resampler.resize(picture, kept.width, kept.height, {0, 0, kept.width, kept.height},
                   {kept.planes.data()});
  return kept;
}

void measure(const std::filesystem::path& folder, int rounds) {
  const Files files = files_in(folder);
  data::PictureReader reader;
  data::Resampler resampler;
  std::vector<std::uint8_t> out(std::size_t{3} * kSize * kSize);
  double pixels = 0;
  for (const auto& file : files) {
    const data::RgbxView view = reader.decode(file, "picture", true);
    pixels += static_cast<double>(view.width) * view.height;
  }
  const double decode = best_seconds(rounds, [&] {
    for (const auto& file : files) reader.decode(file, "picture", true);
  });
  const double both = best_seconds(rounds, [&] {
    for (const auto& file : files) {
      data::centre_crop(reader.decode(file, "picture", true), kSize, resampler, {out.data()});
    }
  });
  std::vector<Kept> kept;
  for (const auto& file : files)
    kept.push_back(keep(reader.decode(file, "picture", true), resampler));
  data::Random random(1);
  const double cut = best_seconds(rounds, [&] {
    for (const Kept& picture : kept) {
      data::resize_cut({picture.planes.data(), 3, picture.height, picture.width},
                       data::draw_random_resized_crop(picture.width, picture.height, random), kSize,
                       kSize, out);
    }
  });
  const std::vector<std::uint8_t> one(std::size_t{350} * 270 * data::kRgbxBytes, 99);
  const data::RgbxView view{one.data(), 350, 270, std::ptrdiff_t{350} * data::kRgbxBytes};
  const double resize = best_seconds(rounds * 100, [&] {
    resampler.resize(view, kSize, kSize, {0, 0, kSize, kSize}, {out.data()});
  });
  const auto count = static_cast<double>(files.size());
  fmt::print("{} pictures of {:.2f} megapixels\n", files.size(), pixels / count * 1e-6);
  fmt::print("decoded                         {:8.0f} a second\n", count / decode);
  fmt::print("decoded, resized, cut to {}    {:8.0f} a second\n", kSize, count / both);
  fmt::print("random parts of kept pictures   {:8.0f} a second\n", count / cut);
  fmt::print("350 x 270 resized to {} x {}  {:8.3f} ms\n", kSize, kSize, 1e3 * resize);
}

}  // namespace

}  // namespace ringlet::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "pictures_bench FOLDER [ROUNDS]\n");
    return 2;
  }
  try {
    ringlet::bench::measure(argv[1], argc > 2 ? std::stoi(argv[2]) : 5);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pictures_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
