// Which records of a `.rec` are pictures, and of whom. From the `.idx` beside it, else found by
// going through the file.
//
// A record is a picture where bytes follow its labels. InsightFace's record 0 has two labels, a and
// b: pictures are keys 1 to a - 1, and keys from a to b - 1 identities, without a picture. Being an
// f32 it is rounded from 2^24 on, so `a` is only compared with what is there.
//
// The list is kept beside the file, as NAME.labels, where that can be written: 42 million heads are
// read once. It counts while the sizes and times of both files are the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/stop_request.h"
#include "data/record_file.h"

namespace ringlet::data {

/// The largest label: an f32 knows all whole numbers up to here.
inline constexpr std::int32_t kMostRecordLabel = 1 << 24;

struct RecordList {
  std::vector<std::uint64_t> keys;     ///< of pictures; without an .idx their numbers, from 1
  std::vector<std::uint64_t> offsets;  ///< where their records begin
  std::vector<std::int32_t> labels;
  std::int64_t identities = 0;  ///< the largest label and 1
  float told = 0;               ///< `a` of record 0; 0: it tells none
  std::uint64_t strange = 0;    ///< records whose picture does not begin as one
  std::uint64_t first_strange = 0;

  bool operator==(const RecordList&) const = default;
};

/// Throws DataError: records and `.idx` as in record_file.h, a label that is no whole number from 0
/// to kMostRecordLabel, a file without a picture.
RecordList list_records(const RecordFile& records, const StopRequest& stop = {});

/// The names of `identities`: their numbers, with zeros in front, so that they sort as numbers do.
std::vector<std::string> identity_names(std::int64_t identities);

/// What a user should know of `list`, a line each.
std::vector<std::string> notes_on(const std::string& records, const RecordList& list);

}  // namespace ringlet::data
