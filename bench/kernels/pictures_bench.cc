// How many pictures a second one processor decodes and resizes:
//
//   pictures_bench FOLDER [ROUNDS]
//
// of all pictures below FOLDER, whose files are read before. The best of the rounds counts, by the
// thread's own processor time. bench/peers/pictures.py does the same with Pillow.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/images/centre_crop.h"
#include "data/images/picture_reader.h"

namespace ringlet::bench {

namespace {

using Files = std::vector<std::vector<std::uint8_t>>;

constexpr int kSize = 224;

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
  const std::vector<std::uint8_t> one(std::size_t{350} * 270 * data::kRgbxBytes, 99);
  const data::RgbxView view{one.data(), 350, 270, std::ptrdiff_t{350} * data::kRgbxBytes};
  const double resize = best_seconds(rounds * 100, [&] {
    resampler.resize(view, kSize, kSize, {0, 0, kSize, kSize}, {out.data()});
  });
  const auto count = static_cast<double>(files.size());
  fmt::print("{} pictures of {:.2f} megapixels\n", files.size(), pixels / count * 1e-6);
  fmt::print("decoded                         {:8.0f} a second\n", count / decode);
  fmt::print("decoded, resized, cut to {}    {:8.0f} a second\n", kSize, count / both);
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
