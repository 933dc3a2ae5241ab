// MXNet's RecordIO, `.rec`: pictures with their labels, one behind the other. Little-endian.
//
//   record    one part, or several
//   part      u32 0xced7230a, the magic word
//             u32 kind << 29 | bytes       kind: 0 the whole record, 1 its first part, 2 one in the
//                                          middle, 3 the last
//             bytes of payload, and zeros to a multiple of 4
//   payload   u32 flag, f32 label, u64 id, u64 id2
//             flag x f32                   labels; the first counts, and not the one above
//             a picture as its file has it: JPEG or PNG; or nothing
//
// A payload that holds the magic word at a multiple of 4 is cut there, and the word is left out:
// it stands between two parts, and joining puts it back. Source: dmlc-core's recordio.h, and
// MXNet's image_recordio.h.
//
// Beside it may lie an `.idx`, which says where records begin: lines of KEY TAB OFFSET.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "data/stored_file.h"

namespace ringlet::data {

inline constexpr std::uint32_t kRecordMagic = 0xced7230a;
/// Bytes of a part, at most.
inline constexpr std::uint32_t kMostPartBytes = (1U << 29) - 1;

/// What a record is, without its picture.
struct RecordHead {
  std::uint32_t flag = 0;
  std::array<float, 2> labels{};    ///< the first two; {label, 0} where flag is 0
  std::uint64_t picture_bytes = 0;  ///< behind the labels
  bool is_picture = false;          ///< which begins as PNG, JPEG, WebP, BMP or PNM do
  std::uint64_t end = 0;            ///< where the next record begins
};

/// Reads records by where they begin. Any number of threads read one.
class RecordFile {
 public:
  /// Throws DataError as StoredFile.
  explicit RecordFile(const std::filesystem::path& path) : file_(path) {}

  const StoredFile& file() const { return file_; }

  /// Throws DataError: no record begins at `offset`, it is cut short, a part has no beginning or no
  /// end, or the labels do not fit in.
  RecordHead head(std::uint64_t offset) const;
  /// The picture's bytes, in `bytes`, whose memory is used again. Throws DataError as head().
  void picture(std::uint64_t offset, std::vector<std::uint8_t>& bytes) const;

 private:
  struct Whole {
    std::uint64_t bytes = 0;  // of the payload
    std::uint64_t end = 0;
  };
  Whole join(std::uint64_t offset, std::uint64_t most, std::vector<std::uint8_t>& payload) const;
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;

  StoredFile file_;
};

struct IndexEntry {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
};

/// Reads an `.idx`, in the order of the keys. `name` is the file's and `records` that of the
/// `.rec`, which has `bytes`; both are for messages. Throws DataError: a line of another form, a
/// key that is there twice, an offset at which no record can begin.
std::vector<IndexEntry> read_record_index(std::istream& lines, const std::string& name,
                                          const std::string& records, std::uint64_t bytes);

/// A payload as parts, as a `.rec` has it.
std::string as_record(std::span<const std::uint8_t> payload);

/// A payload: `labels` in the head, where there is one, else behind it.
std::string record_payload(std::span<const float> labels, std::uint64_t id,
                           std::span<const std::uint8_t> picture);

}  // namespace ringlet::data
