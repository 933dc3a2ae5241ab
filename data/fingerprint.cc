#include "data/fingerprint.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/hash.h"
#include "data/stored_file.h"

namespace ringlet::data {

std::uint64_t fingerprint_of(const std::filesystem::path& path, const FingerprintRange& range) {
  thread_local std::vector<std::uint8_t> bytes(kReadWhole);
  const StoredFile file(path);
  std::uint64_t hash = file.bytes();
  const auto add = [&](std::uint64_t from, std::uint64_t count) {
    const std::span<std::uint8_t> part(bytes.data(), count);
    file.read(from, part);
    hash = hash_bytes(part, hash);
  };
  if (file.bytes() <= range.whole) {
    std::uint64_t from = 0;
    do {
      add(from, std::min(kReadWhole, file.bytes() - from));
      from += kReadWhole;
    } while (from < file.bytes());
  } else {
    const std::uint64_t end = file.bytes() - kReadPart, last = range.parts - 1;
    for (std::uint64_t part = 0; part <= last; ++part) {
      add(end / last * part + end % last * part / last, kReadPart);  // no product overflows
    }
  }
  return hash;
}

}  // namespace ringlet::data
