#include "train/files/pixel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "data/cached_dataset.h"
#include "data/content_hash.h"
#include "train/files/atomic_file.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;
using Pixels = std::vector<std::uint8_t>;

constexpr std::string_view kMagic = "ringlet pixels 1";

struct CacheHeader {
  std::uint64_t data_hash = 0;
  std::uint64_t samples = 0;
  std::uint64_t sample_bytes = 0;
  std::uint64_t content_hash = 0;
};
static_assert(sizeof(CacheHeader) == 32);

CacheHeader header_for(const data::Dataset& set) {
  return {set.hash(), static_cast<std::uint64_t>(set.size()),
          static_cast<std::uint64_t>(set.pixels()), 0};
}

std::uint64_t hash_of(const Pixels& pixels) { return data::hash_bytes(pixels, 0); }

/// Throws FileError for a file that is no cache.
void require_cache(const fs::path& file, std::string_view beginning) {
  if (kMagic.starts_with(beginning)) return;
  throw FileError(file.string() + " is no cache of pixels; name another file with --cache");
}

void write_cache(const fs::path& file, CacheHeader header, const Pixels& pixels) {
  header.content_hash = hash_of(pixels);
  AtomicFile aside(file);
  aside.write(kMagic);
  aside.write(&header, sizeof header);
  aside.write(pixels.data(), pixels.size());
  aside.commit();
}

std::shared_ptr<const data::Dataset> cached(const std::shared_ptr<const data::Dataset>& set,
                                            const fs::path& file, int threads,
                                            std::vector<std::string>& notes) {
  if (!set->images().empty()) return set;
  if (file.empty()) {
    return std::make_shared<const data::CachedDataset>(set, data::read_all(*set, threads));
  }
  if (fs::exists(file)) {
    std::string defect;
    if (auto pixels = read_pixel_cache(file, *set, defect)) {
      return std::make_shared<const data::CachedDataset>(set, *std::move(pixels));
    }
    notes.push_back(fmt::format("{} {}; it is made again", file.string(), defect));
  }
  require_writable_file(file);
  Pixels pixels = data::read_all(*set, threads);
  write_cache(file, header_for(*set), pixels);
  return std::make_shared<const data::CachedDataset>(set, std::move(pixels));
}

}  // namespace

std::optional<Pixels> read_pixel_cache(const fs::path& file, const data::Dataset& set,
                                       std::string& defect) {
  const CacheHeader wanted = header_for(set);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw FileError(file.string() + " cannot be read; check its permissions");
  std::array<char, kMagic.size()> magic{};
  stream.read(magic.data(), magic.size());
  require_cache(file, {magic.data(), static_cast<std::size_t>(stream.gcount())});
  CacheHeader header;
  stream.read(reinterpret_cast<char*>(&header), sizeof header);
  const std::uint64_t bytes = wanted.samples * wanted.sample_bytes;
  std::error_code error;
  if (!stream || fs::file_size(file, error) < kMagic.size() + sizeof header + bytes) {
    defect = "is cut short, or of other data";
  } else if (header.data_hash != wanted.data_hash || header.samples != wanted.samples ||
             header.sample_bytes != wanted.sample_bytes) {
    defect = "is of other data or another image size";
  } else {
    Pixels pixels(bytes);
    stream.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(bytes));
    if (stream && hash_of(pixels) == header.content_hash) return pixels;
    defect = "is damaged";
  }
  return std::nullopt;
}

data::Splits with_cache(data::Splits splits, const std::string& cache, int threads) {
  const bool in_file = cache != "memory";
  const auto file = [&](const char* half) { return in_file ? fs::path(cache + half) : fs::path(); };
  splits.train = cached(splits.train, file(".train"), threads, splits.notes);
  splits.test = cached(splits.test, file(".test"), threads, splits.notes);
  return splits;
}

}  // namespace ringlet::train
