// The formats that `ringlet inspect` knows. A file is recognised by what is in it, never by its
// name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
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
  int pictures = 0;  ///< how many images to draw
};

class Format {
 public:
  virtual ~Format() = default;
  virtual bool recognises(const Subject& subject) const = 0;
  /// Reads all of it in bounded memory. Throws FileError or DataError that names what is wrong and
  /// where.
  virtual Document describe(const Subject& subject, const Wishes& wishes) const = 0;
};

std::unique_ptr<Format> safetensors_format();
std::unique_ptr<Format> idx_format();
std::unique_ptr<Format> trace_format();
std::unique_ptr<Format> metrics_format();
std::unique_ptr<Format> state_format();  ///< state.json, or the folder that holds it
std::unique_ptr<Format> run_format();    ///< the --out of a run

/// All of them, in the order in which they are asked.
std::span<const std::unique_ptr<Format>> formats();

/// Opens a path and reads what recognising it needs. Throws FileError or DataError: not there, not
/// readable.
Subject look_at(const std::filesystem::path& path);

/// The format of `subject`; nullptr for none.
const Format* find_format(const Subject& subject);

/// Describes `path`. Throws FileError or DataError, also where no format recognises it.
Document inspect(const std::filesystem::path& path, const Wishes& wishes);

}  // namespace ringlet::app::inspect
