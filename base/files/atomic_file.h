// Files and folders that are replaced as a whole: the old one or the new one, never a part of
// either.
//
//   write aside (aside.h) -> fsync -> rename over NAME -> fsync the directory
//
// A process that is killed leaves only its aside behind; the next writer of the same name removes
// it. Every failure is one FileError that names the path and the remedy, and removes the aside.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "base/files/aside.h"
#include "base/files/file_error.h"

namespace ringlet {

/// A file that is written aside. Not thread-safe.
class AtomicFile {
 public:
  /// Opens the aside of `target`. Throws FileError.
  explicit AtomicFile(const std::filesystem::path& target);
  /// Removes the aside unless commit() has succeeded.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Throws FileError (a full disk, a quota, a limit).
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Makes the file durable and visible under its name. Throws FileError; the old file then stays.
  void commit();

 private:
  std::filesystem::path target_;
  posix::Aside aside_;
  bool committed_ = false;
};

/// The whole file in one call.
void write_file_atomically(const std::filesystem::path& target, std::string_view content);

/// A folder that is written aside and renamed as one. A folder that already has the name is
/// exchanged with it in one step. Where the file system cannot do that, the former one is an aside
/// ("old") for a moment. Should the process be killed just then, recover() puts it back.
class AtomicDirectory {
 public:
  /// Makes the aside folder. Throws FileError.
  explicit AtomicDirectory(const std::filesystem::path& target);
  /// Removes the aside unless commit() has succeeded.
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  /// Where to write the files of the folder.
  const std::filesystem::path& path() const { return aside_.path; }
  /// Syncs what was written and makes the folder visible under its name. The one that had the name
  /// is removed; where `former` is not empty, it gets that name instead of what was there. Throws
  /// FileError.
  void commit(const std::filesystem::path& former = {});

  /// For writers: finishes or undoes what a killed writer of `target` left. If `target` is not
  /// there but a complete former version of it is, that comes back; dead asides are removed.
  static void recover(const std::filesystem::path& target);
  /// For readers, who change nothing: `target`, or while that is not there a complete former
  /// version of it that is.
  static std::filesystem::path current(const std::filesystem::path& target);

 private:
  std::filesystem::path target_;
  posix::Aside aside_;
  bool committed_ = false;
};

/// Throws FileError unless files can be created in `directory`, which is made if it is not there:
/// found out before the training, not at its end.
void require_writable_directory(const std::filesystem::path& directory);

/// Whether `file` names a device, a named pipe or, as /dev/stdout does, something that is open. It
/// can be written into, but not replaced.
bool is_stream(const std::filesystem::path& file);

/// Throws FileError unless `file` can be written as a whole: its folder is there and takes files,
/// and the name is not that of a folder or a stream.
void require_writable_file(const std::filesystem::path& file);

}  // namespace ringlet
