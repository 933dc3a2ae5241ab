#include "data/picture_print.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/data_error.h"
#include "base/hash.h"
#include "data/images/resample.h"
#include "data/in_parallel.h"
#include "data/picture_dataset.h"
#include "data/stored_file.h"

namespace ringlet::data {

namespace {

constexpr int kWidth = PicturePrint::kWidth, kHeight = PicturePrint::kHeight;
constexpr std::size_t kPlane = std::size_t{kWidth} * kHeight;

std::uint64_t hash_of_pixels(const RgbxView& picture, std::vector<std::uint8_t>& row) {
  const int sides[] = {picture.width, picture.height};
  std::uint64_t hash = hash_bytes(sides, sizeof sides);
  row.resize(3 * static_cast<std::size_t>(picture.width));
  for (int y = 0; y < picture.height; ++y) {
    const std::uint8_t* from = picture.pixels + y * picture.row_bytes;
    std::uint8_t* to = row.data();
    for (int x = 0; x < picture.width; ++x, from += kRgbxBytes) {  // the fourth byte means nothing
      for (int c = 0; c < 3; ++c) *to++ = from[c];
    }
    hash = hash_bytes(row, hash);
  }
  return hash;
}

/// The hash and the format of a file, a piece at a time.
void look_at_bytes(const std::filesystem::path& path, PicturePrint& print) {
  thread_local std::vector<std::uint8_t> bytes(std::size_t{256} << 10);
  const StoredFile file(path);
  print.file = file.bytes();
  for (std::uint64_t from = 0; from < file.bytes(); from += bytes.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(bytes.size(), file.bytes() - from);
    const std::span<std::uint8_t> piece(bytes.data(), static_cast<std::size_t>(count));
    file.read(from, piece);
    if (from == 0) print.format = image_format(piece);
    print.file = hash_bytes(piece, print.file);
  }
}

std::uint64_t sketch_of(const PicturePrint& print) {
  const auto grey = [&](std::size_t at) {
    constexpr int kRed = 2, kGreen = 5, kBlue = 1, kSum = 8;
    return (kRed * print.small[at] + kGreen * print.small[kPlane + at] +
            kBlue * print.small[2 * kPlane + at]) /
           kSum;
  };
  std::uint64_t sketch = 0;
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 0; x + 1 < kWidth; ++x) {
      const std::size_t at = y * kWidth + x;
      sketch = sketch << 1 | (grey(at) > grey(at + 1) + kStep ? 1 : 0);
    }
  }
  return sketch;
}

/// The sum over all levels of a small picture: two that are nearly equal differ little in it.
int sum_of(const PicturePrint& print) {
  return std::accumulate(print.small.begin(), print.small.end(), 0);
}

constexpr int kMostSum = kMostLevels * 3 * static_cast<int>(kPlane);

bool nearly_equal(const PicturePrint& a, const PicturePrint& b) {
  if (std::popcount(a.sketch ^ b.sketch) > kMostBits) return false;
  int sum = 0;
  for (std::size_t i = 0; i < a.small.size(); ++i) {
    const int difference = std::abs(a.small[i] - b.small[i]);
    if (difference > kMostAnywhere) return false;
    sum += difference;
  }
  return sum <= kMostSum;
}

/// Groups of indices, each under its smallest.
class Groups {
 public:
  explicit Groups(std::size_t size) : above_(size) {
    std::iota(above_.begin(), above_.end(), std::size_t{0});
  }
  std::size_t of(std::size_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = of(a);
    b = of(b);
    above_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> above_;
};

/// Joins what is nearly equal. Where at most kMostBits of 64 differ, one of kMostBits + 1 parts of
/// the sketches is the same: only such pictures are compared, in the order of their sums.
void join_near(std::span<const PicturePrint> prints, const std::vector<std::size_t>& some,
               Groups& groups) {
  constexpr int kParts = kMostBits + 1, kBits = 64;
  std::vector<int> sums(prints.size());
  for (const std::size_t i : some) sums[i] = sum_of(prints[i]);
  std::vector<std::size_t> order = some;
  for (int part = 0; part < kParts; ++part) {
    const int from = part * kBits / kParts, bits = (part + 1) * kBits / kParts - from;
    const auto key = [&](std::size_t i) {
      return prints[i].sketch >> from & ((std::uint64_t{1} << bits) - 1);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(key(a), sums[a], a) < std::tuple(key(b), sums[b], b);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = i + 1; j < order.size() && key(order[j]) == key(order[i]) &&
                                  sums[order[j]] - sums[order[i]] <= kMostSum;
           ++j) {
        if (nearly_equal(prints[order[i]], prints[order[j]])) groups.join(order[i], order[j]);
      }
    }
  }
}

}  // namespace

PicturePrint print_picture(const std::filesystem::path& file) {
  thread_local std::vector<std::uint8_t> row;
  thread_local Resampler resampler;
  PicturePrint print;
  try {
    look_at_bytes(file, print);
    PictureReader& reader = reader_of_this_thread();
    const LetGo let_go(reader);
    const RgbxView picture = reader.load(file, true);
    print.width = picture.width;
    print.height = picture.height;
    print.pixels = hash_of_pixels(picture, row);
    resampler.resize(picture, kWidth, kHeight, {0, 0, kWidth, kHeight}, {print.small.data()});
    print.sketch = sketch_of(print);
  } catch (const DataError& error) {
    print.defect = error.what();
  }
  return print;
}

std::vector<PicturePrint> print_pictures(std::span<const std::filesystem::path> files,
                                         const StopRequest& stop) {
  std::vector<PicturePrint> prints(files.size());
  in_parallel(
      std::ssize(files), reading_threads(),
      [&](std::int64_t i) {
        prints[static_cast<std::size_t>(i)] = print_picture(files[static_cast<std::size_t>(i)]);
      },
      stop);
  return prints;
}

std::vector<std::size_t> alike(std::span<const PicturePrint> prints, bool nearly) {
  Groups groups(prints.size());
  std::unordered_map<std::uint64_t, std::size_t> by_file, by_pixels;
  std::vector<std::size_t> different;  // one of those that are equal
  for (std::size_t i = 0; i < prints.size(); ++i) {
    const PicturePrint& print = prints[i];
    const auto [same_file, new_file] = by_file.try_emplace(print.file, i);
    if (!new_file && print.file != 0) groups.join(same_file->second, i);
    if (!print.defect.empty()) continue;
    const auto [same, is_new] = by_pixels.try_emplace(print.pixels, i);
    if (is_new) different.push_back(i);
    groups.join(same->second, i);
  }
  if (nearly) join_near(prints, different, groups);
  std::vector<std::size_t> all(prints.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = groups.of(i);
  return all;
}

}  // namespace ringlet::data
