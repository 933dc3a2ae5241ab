// The formats that `ringlet inspect` knows. A file is recognised by what is in it, never by its
// name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "app/inspect/document.h"

namespace ringlet::app::inspect {

/// A file or folder that a user named, and enough of it to recognise it.
struct Subject {
  std::filesystem::path path;
  bool is_folder = false;
  std::string head;          ///< the first bytes, unpacked where the file is gzipped
  std::uint64_t stored = 0;  ///< bytes on the disk
  bool gzipped = false;
};

struct Wishes {
  int pictures = 0;         ///< how many images to draw
  bool thumbnails = false;  ///< for a page
};

struct Format {
  bool (*recognises)(const Subject& subject);
  /// Reads all of it in bounded memory. Throws FileError or DataError that names what is wrong and
  /// where.
  Document (*describe)(const Subject& subject, const Wishes& wishes);
};

extern const Format kSafetensors, kIdx, kTrace, kMetrics;
extern const Format kState;     ///< state.json, or the folder that holds it
extern const Format kRun;       ///< the --out of a run
extern const Format kPictures;  ///< a folder of them

/// Opens a path and reads what recognising it needs. Throws FileError or DataError: not there, not
/// readable.
Subject look_at(const std::filesystem::path& path);

/// Describes `path`. Throws FileError or DataError, also where no format recognises it.
Document inspect(const std::filesystem::path& path, const Wishes& wishes);

}  // namespace ringlet::app::inspect
