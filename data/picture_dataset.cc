#include "data/picture_dataset.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "base/data_error.h"
#include "data/images/centre_crop.h"
#include "data/in_parallel.h"
#include "data/random.h"

namespace ringlet::data {

namespace {

constexpr std::int64_t kMeasured = 4096;  // pictures that statistics are taken of, at most

/// What a thread reads pictures with.
struct PictureTools {
  PictureReader reader;
  Resampler resampler;
  std::vector<std::uint8_t> kept;  // what a sample is cut from
};

PictureTools& tools_of_this_thread() {
  thread_local PictureTools tools;
  return tools;
}

/// What is kept of a picture: its width and height, then [3, height, width].
constexpr std::size_t kKeptHead = 2 * sizeof(std::uint32_t);

Planes kept_picture(std::span<const std::uint8_t> kept) {
  std::uint32_t sides[2] = {};
  if (kept.size() >= kKeptHead) std::memcpy(sides, kept.data(), kKeptHead);
  if (sides[0] == 0 || sides[1] == 0 || kept.size() != kKeptHead + 3ULL * sides[0] * sides[1]) {
    throw DataError("a picture in the cache is damaged; remove the cache's files");
  }
  return {kept.data() + kKeptHead, 3, static_cast<int>(sides[1]), static_cast<int>(sides[0])};
}

bool is_good(const std::string& defect) { return defect.empty(); }

}  // namespace

int reading_threads() {
  constexpr unsigned kMost = 16;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

PictureReader& reader_of_this_thread() { return tools_of_this_thread().reader; }

std::vector<std::string> find_defects(std::int64_t count, const StopRequest& stop,
                                      const std::function<void(std::int64_t)>& look) {
  std::vector<std::string> defects(static_cast<std::size_t>(count));
  in_parallel(
      count, reading_threads(),
      [&](std::int64_t i) {
        try {
          look(i);
        } catch (const DataError& error) {
          defects[static_cast<std::size_t>(i)] = error.what();
        }
      },
      stop);
  return defects;
}

void note_left_out(const std::string& name, const std::vector<std::string>& defects,
                   std::vector<std::string>& notes) {
  constexpr std::int64_t kNamed = 10;
  std::int64_t broken = 0;
  for (const std::string& defect : defects) {
    if (!is_good(defect) && ++broken <= kNamed) notes.push_back("left out " + defect);
  }
  if (broken == 0) return;
  notes.push_back(name + ": left out " + std::to_string(broken) + " of " +
                  std::to_string(defects.size()) + " pictures, which cannot be read");
}

void refuse_defects(const std::string& name, const std::vector<std::string>& defects) {
  const auto first = std::find_if_not(defects.begin(), defects.end(), is_good);
  if (first == defects.end()) return;
  throw DataError(*first + "; " +
                  std::to_string(std::ranges::count_if(defects, std::not_fn(is_good))) + " of " +
                  std::to_string(defects.size()) + " pictures in " + name +
                  " cannot be read, and --skip-broken leaves them out");
}

std::vector<std::int64_t> test_sample(std::int64_t size) {
  constexpr std::int64_t kMost = 1000;
  const std::int64_t samples = std::min(size, kMost);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < samples; ++i) indices.push_back(i * size / samples);
  return indices;
}

std::string note_on_test_sample(const std::string& name, std::int64_t samples,
                                const std::string& lacking) {
  return name + ": there is no " + lacking + ", so the test is on " + std::to_string(samples) +
         " of the training pictures: it tells of learning, and nothing of other pictures";
}

PictureDataset::PictureDataset(const std::string& name, std::vector<std::string> target_names,
                               std::vector<std::int32_t> targets, const ImageFolderOptions& options)
    : Dataset({.name = name,
               .channels = 3,
               .height = options.image_size,
               .width = options.image_size,
               .target_names = std::move(target_names),
               .photographs = true,
               .stop_requested = options.stop_requested},
              std::move(targets)),
      size_(options.image_size),
      crop_from_(options.crop_from),
      exif_(options.exif) {}

void PictureDataset::read(std::int64_t index, std::span<std::uint8_t> out) const {
  require_sample(index);
  PictureTools& tools = tools_of_this_thread();
  const LetGo let_go(tools.reader);
  centre_crop(load(index, tools.reader), size_, tools.resampler, {out.data()});
}

void PictureDataset::read_varied(std::int64_t index, const Variation& variation,
                                 std::span<std::uint8_t> out) const {
  if (variation.kind != Augment::random_resized_crop) {
    return Dataset::read_varied(index, variation, out);
  }
  PictureTools& tools = tools_of_this_thread();
  if (crop_from_ > 0) {
    keep(index, tools.kept);
    return vary_kept(tools.kept, variation, out);
  }
  const LetGo let_go(tools.reader);
  const RgbxView picture = load(index, tools.reader);
  Random random(variation.key);
  const Cut cut = draw_random_resized_crop(picture.width, picture.height, random);
  tools.resampler.resize(picture.cropped(cut.box), size_, size_, {0, 0, size_, size_},
                         {out.data(), 3, cut.mirrored});
}

void PictureDataset::keep(std::int64_t index, std::vector<std::uint8_t>& kept) const {
  if (keeps_samples()) return Dataset::keep(index, kept);
  PictureTools& tools = tools_of_this_thread();
  const LetGo let_go(tools.reader);
  const RgbxView picture = load(index, tools.reader);
  const std::int64_t shorter = std::min(picture.width, picture.height);
  const auto side = [&](std::int64_t whole) {
    return static_cast<int>(shorter > crop_from_ ? crop_from_ * whole / shorter : whole);
  };
  const int width = side(picture.width), height = side(picture.height);
  const std::uint32_t sides[] = {static_cast<std::uint32_t>(width),
                                 static_cast<std::uint32_t>(height)};
  kept.resize(kKeptHead + 3 * std::size_t(width) * std::size_t(height));
  std::memcpy(kept.data(), sides, kKeptHead);
  const ResampleTarget target{kept.data() + kKeptHead};
  if (shorter <= crop_from_) return write_planes(picture, target);
  tools.resampler.resize(picture, width, height, {0, 0, width, height}, target);
}

void PictureDataset::vary_kept(std::span<const std::uint8_t> kept, const Variation& variation,
                               std::span<std::uint8_t> out) const {
  if (keeps_samples()) return Dataset::vary_kept(kept, variation, out);
  const Planes picture = kept_picture(kept);
  Random random(variation.key);
  resize_cut(picture, draw_random_resized_crop(picture.width, picture.height, random), size_, size_,
             out);
}

std::vector<PixelStatistics> PictureDataset::measure() const {
  return measure_every((size() + kMeasured - 1) / kMeasured);
}

std::uint64_t PictureDataset::hash_of_options(std::uint64_t seed) const {
  return seed ^ (exif_ ? 1 : 0) ^ (static_cast<std::uint64_t>(crop_from_) << 1);
}

}  // namespace ringlet::data
