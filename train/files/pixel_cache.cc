#include "train/files/pixel_cache.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/hash.h"
#include "data/cached_dataset.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;
using data::KeptSamples;

constexpr std::string_view kMagic = "ringlet pixels 2", kFormerMagic = "ringlet pixels 1";

struct CacheHeader {
  std::uint64_t data_hash = 0;
  std::uint64_t samples = 0;
  std::uint64_t sample_bytes = 0;  // 0: the sizes follow
  std::uint64_t content_hash = 0;
};
static_assert(sizeof(CacheHeader) == 32);

CacheHeader header_for(const data::Dataset& set) {
  const std::int64_t bytes = set.keeps_samples() ? set.pixels() : 0;
  return {set.hash(), static_cast<std::uint64_t>(set.size()), static_cast<std::uint64_t>(bytes), 0};
}

std::uint64_t hash_of(const KeptSamples& kept) {
  if (!kept.images().empty()) return hash_bytes(kept.images(), 0);
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i < kept.size(); ++i) hash = hash_bytes(kept[i], hash);
  return hash;
}

bool names_something(const fs::path& file) {
  std::error_code error;
  return fs::status(file, error).type() != fs::file_type::not_found;
}

/// What the name leads to, so that a link there stays one.
fs::path behind_links(const fs::path& file) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  return error ? file : real;  // nothing is there
}

/// Throws FileError where the file can be neither read nor made: before any sample is decoded.
void require_readable_or_new(const fs::path& file) {
  if (names_something(file)) {
    open_input(file);
  } else {
    require_writable_file(file);
  }
}

/// Throws FileError for a file that is no cache.
void require_cache(const fs::path& file, std::string_view beginning) {
  if (kMagic.starts_with(beginning) || beginning == kFormerMagic) return;
  throw FileError(file.string() + " is no cache of pixels; name another file with --cache");
}

void write_cache(const fs::path& file, CacheHeader header, const KeptSamples& kept) {
  header.content_hash = hash_of(kept);
  AtomicFile aside(file);
  aside.write(kMagic);
  aside.write(&header, sizeof header);
  if (header.sample_bytes == 0) {
    for (std::int64_t i = 0; i < kept.size(); ++i) {
      const std::uint64_t bytes = kept[i].size();
      aside.write(&bytes, sizeof bytes);
    }
  }
  for (std::int64_t i = 0; i < kept.size(); ++i) aside.write(kept[i].data(), kept[i].size());
  aside.commit();
}

/// The bytes of each sample. Empty where `stream`, of which `left` bytes are left, cannot hold
/// them.
std::vector<std::uint64_t> read_sizes(std::istream& stream, const CacheHeader& header,
                                      std::uint64_t left) {
  if (header.sample_bytes > 0) {
    if (left / header.sample_bytes < header.samples) return {};
    return std::vector<std::uint64_t>(header.samples, header.sample_bytes);
  }
  if (left / sizeof(std::uint64_t) < header.samples) return {};
  std::vector<std::uint64_t> sizes(header.samples);
  stream.read(reinterpret_cast<char*>(sizes.data()),
              static_cast<std::streamsize>(sizes.size() * sizeof(std::uint64_t)));
  left -= sizes.size() * sizeof(std::uint64_t);
  for (const std::uint64_t size : sizes) {
    if (size > left) return {};
    left -= size;
  }
  return sizes;
}

std::shared_ptr<const data::Dataset> cached(const std::shared_ptr<const data::Dataset>& set,
                                            const fs::path& file, int threads,
                                            std::vector<std::string>& notes) {
  if (!set->images().empty()) return set;
  std::shared_ptr<const KeptSamples> kept;
  if (!file.empty() && names_something(file)) {
    std::string defect;
    kept = read_pixel_cache(file, *set, defect);
    if (!kept) notes.push_back(fmt::format("{} {}; it is made again", file.string(), defect));
  }
  if (!kept) {
    const fs::path target = behind_links(file);
    if (!file.empty()) require_writable_file(target);
    kept = keep_all(*set, threads);
    if (!file.empty()) write_cache(target, header_for(*set), *kept);
  }
  return std::make_shared<const data::CachedDataset>(set, std::move(kept));
}

}  // namespace

std::shared_ptr<const KeptSamples> read_pixel_cache(const fs::path& file, const data::Dataset& set,
                                                    std::string& defect) {
  const CacheHeader wanted = header_for(set);
  std::ifstream stream = open_input(file);
  std::array<char, kMagic.size()> magic{};
  stream.read(magic.data(), magic.size());
  require_cache(file, {magic.data(), static_cast<std::size_t>(stream.gcount())});
  CacheHeader header;
  stream.read(reinterpret_cast<char*>(&header), sizeof header);
  std::error_code error;
  const std::uint64_t length = fs::file_size(file, error), head = kMagic.size() + sizeof header;
  const std::vector<std::uint64_t> sizes = !stream || length < head
                                               ? std::vector<std::uint64_t>()
                                               : read_sizes(stream, wanted, length - head);
  if (std::string_view(magic.data(), magic.size()) == kFormerMagic) {
    defect = "is an earlier version's, which decoded some pictures otherwise";
  } else if (sizes.empty()) {
    defect = "is cut short, or of other data";
  } else if (header.data_hash != wanted.data_hash || header.samples != wanted.samples ||
             header.sample_bytes != wanted.sample_bytes) {
    defect = "is of other data or another image size";
  } else {
    const auto kept = std::make_shared<KeptSamples>(set);
    std::vector<std::uint8_t> sample;
    for (std::size_t i = 0; stream && i < sizes.size(); ++i) {
      sample.resize(sizes[i]);
      stream.read(reinterpret_cast<char*>(sample.data()),
                  static_cast<std::streamsize>(sample.size()));
      kept->put(static_cast<std::int64_t>(i), sample);
    }
    if (stream && hash_of(*kept) == header.content_hash) return kept;
    defect = "is damaged";
  }
  return nullptr;
}

data::Splits with_cache(data::Splits splits, const std::string& cache, int threads) {
  const bool in_file = cache != "memory";
  const auto file = [&](const char* half) { return in_file ? fs::path(cache + half) : fs::path(); };
  if (in_file && splits.train->images().empty()) require_readable_or_new(file(".train"));
  if (in_file && splits.test->images().empty()) require_readable_or_new(file(".test"));
  splits.train = cached(splits.train, file(".train"), threads, splits.notes);
  splits.test = cached(splits.test, file(".test"), threads, splits.notes);
  return splits;
}

}  // namespace ringlet::train
