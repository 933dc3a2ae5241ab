// From the forms in which faces are passed on to folders of pictures, and back. Pictures stay as
// they are, byte for byte.
//
//   FILE.bin -> DIR        DIR/000017.jpg, in the order of the pickle, and DIR/pairs.txt
//   FILE.rec -> DIR        DIR/LABEL/KEY.jpg
//   DIR      -> FILE.rec   of DIR/IDENTITY/*, with FILE.idx; identities are numbered by name, by
//                          code point, and record 0 and those of the identities are InsightFace's
//
// All is looked at before anything is written, and all is written aside: it is there as a whole, or
// not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/stop_request.h"

namespace ringlet::data {

struct ConvertOptions {
  StopRequest stop_requested{};  ///< asked between pictures; then Stopped is thrown
  /// Told how many pictures of how many are written.
  std::function<void(std::int64_t done, std::int64_t total)> progress{};
};

struct Converted {
  std::int64_t pictures = 0;
  std::int64_t pairs = 0, same = 0;  ///< of a .bin
  std::int64_t identities = 0;       ///< with a picture, of the others
  std::vector<std::string> notes{};  ///< what a user should know
};

/// `folder` is replaced where it is there already. Throw DataError for what cannot be taken, and
/// FileError for what cannot be written.
Converted convert_bin(const std::filesystem::path& bin, const std::filesystem::path& folder,
                      const ConvertOptions& options = {});
Converted convert_records(const std::filesystem::path& records, const std::filesystem::path& folder,
                          const ConvertOptions& options = {});
/// `records` ends in .rec.
Converted convert_folder(const std::filesystem::path& folder, const std::filesystem::path& records,
                         const ConvertOptions& options = {});

/// The name of something in `folder` that none of these have written; empty: there is none.
std::string foreign_entry(const std::filesystem::path& folder);

}  // namespace ringlet::data
