// Caches of pixels, each written into a file first: they are read by name. The set that they should
// be of has three samples.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files/atomic_file.h"
#include "base/hash.h"
#include "data/memory_dataset.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/pixel_cache.h"

namespace ringlet::fuzz {

namespace {

const std::vector<std::uint8_t>& pixels() {
  static const std::vector<std::uint8_t> bytes(3 * 3 * 2 * 2, 0x40);
  return bytes;
}

const data::Dataset& set() {
  static const data::MemoryDataset kSet(
      {.name = "three", .channels = 3, .height = 2, .width = 2, .target_names = {"a", "b"}},
      pixels(), {0, 1, 0});
  return kSet;
}

/// A set that keeps pictures of other sizes than its samples.
class Larger final : public data::Dataset {
 public:
  Larger()
      : Dataset({.name = "larger", .channels = 1, .height = 1, .width = 1, .target_names = {"a"}},
                {0, 0, 0}) {}
  void read(std::int64_t /*index*/, std::span<std::uint8_t> out) const override { out[0] = 0; }
  bool keeps_samples() const override { return false; }
};

const data::Dataset& larger() {
  static const Larger kSet;
  return kSet;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string cache(std::uint64_t hash, std::uint64_t samples) {
  const std::uint64_t content = hash_bytes(pixels(), 0);
  return "ringlet pixels 2" + bytes_of(hash) + bytes_of(samples) + bytes_of(set().pixels()) +
         bytes_of(content) + std::string(pixels().begin(), pixels().end());
}

std::string cache_of_larger() {
  const std::uint64_t sizes[] = {2, 1, 0}, samples = 3, none = 0;
  const std::vector<std::uint8_t> first{1, 2}, second{3};
  const std::uint64_t content =
      hash_bytes(std::span<const std::uint8_t>(), hash_bytes(second, hash_bytes(first, 0)));
  return "ringlet pixels 2" + bytes_of(larger().hash()) + bytes_of(samples) + bytes_of(none) +
         bytes_of(content) + bytes_of(sizes) + "\1\2\3";
}

}  // namespace

std::vector<std::string> seeds() {
  return {cache(set().hash(), 3),
          cache(set().hash(), ~std::uint64_t{0}),
          cache(7, 3),
          cache(set().hash(), 3).substr(0, 60),
          cache_of_larger(),
          "ringlet pixels 2",
          "something else"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("ringlet-fuzz-" + std::to_string(getpid()));
  std::ofstream(file, std::ios::binary) << fuzz::text_of(data, size);
  fuzz::reads<FileError>([&] {
    std::string defect;
    const auto read = train::read_pixel_cache(file, fuzz::set(), defect);
    fuzz::promise((read != nullptr) == defect.empty(), "what cannot be taken has a reason");
    fuzz::promise(!read || read->images().size() == fuzz::pixels().size(),
                  "there are as many pixels as the set has");
    defect.clear();
    const auto larger = train::read_pixel_cache(file, fuzz::larger(), defect);
    fuzz::promise(!larger || larger->size() == fuzz::larger().size(),
                  "there are as many pictures as the set has");
  });
  return 0;
}
