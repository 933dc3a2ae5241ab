// A file's fingerprint: 64 bits over its size and its bytes, by which data that lie in files are
// told from others. Neither its name nor its times count: a copy has the same.
//
//   up to 256 KiB   all bytes
//   larger          64 KiB each at the beginning, in the middle and at the end
//
// So a large file is read in part only. Pictures that are compressed differ in their first bytes
// where they differ at all; of a large one that is not (BMP, PPM), a change elsewhere is not seen.
// A file that holds a whole data set (.rec) is read whole up to 256 MiB, else in 4096 such parts at
// equal distances.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ringlet::data {

inline constexpr std::uint64_t kReadWhole = std::uint64_t{256} << 10;  ///< bytes
inline constexpr std::uint64_t kReadPart = std::uint64_t{64} << 10;    ///< bytes, three times

/// How much of a file is read.
struct FingerprintRange {
  std::uint64_t whole = kReadWhole;  ///< bytes up to which that is all of it
  std::uint64_t parts = 3;           ///< of kReadPart, of a larger one; at least 2
};
/// Of one that holds a whole data set.
inline constexpr FingerprintRange kOfDataSet{std::uint64_t{256} << 20, 4096};

/// Is stored in saved states, as hash_bytes() is. Throws DataError for what is no regular file, or
/// cannot be read.
std::uint64_t fingerprint_of(const std::filesystem::path& file, const FingerprintRange& range = {});

}  // namespace ringlet::data
