#include "data/fingerprint.h"

#include <span>
#include <vector>

#include "base/hash.h"
#include "data/stored_file.h"

namespace ringlet::data {

std::uint64_t fingerprint_of(const std::filesystem::path& path) {
  thread_local std::vector<std::uint8_t> bytes(kReadWhole);
  const StoredFile file(path);
  std::uint64_t hash = file.bytes();
  const auto add = [&](std::uint64_t from, std::uint64_t count) {
    const std::span<std::uint8_t> part(bytes.data(), count);
    file.read(from, part);
    hash = hash_bytes(part, hash);
  };
  if (file.bytes() <= kReadWhole) {
    add(0, file.bytes());
  } else {
    const std::uint64_t end = file.bytes() - kReadPart;
    for (const std::uint64_t from : {std::uint64_t{0}, end / 2, end}) add(from, kReadPart);
  }
  return hash;
}

}  // namespace ringlet::data
