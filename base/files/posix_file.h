// The system calls behind atomic_file.h, with errors as FileError instead of errno.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>

#include "base/descriptor.h"
#include "base/files/file_error.h"

namespace ringlet::posix {

/// "cannot write PATH: No space left on device; free space there or write elsewhere"
FileError file_error(const char* verb, const std::filesystem::path& path, int code);

/// Writes all the bytes, however often the kernel takes only a part. `path` is for messages.
void write_all(int descriptor, const std::filesystem::path& path, const void* data,
               std::size_t bytes);

/// Flushes a file or a folder to the disk.
void sync_path(const std::filesystem::path& path);

/// Makes a rename within `path`'s folder durable.
void sync_parent(const std::filesystem::path& path);

/// The folder that holds `path`: "." for a bare name.
std::filesystem::path parent_of(const std::filesystem::path& path);

/// Whether `path` itself, and no link there, is still the name of what is open.
bool is_name_of(const std::filesystem::path& path, const Descriptor& open);

/// Opens a file that only this program writes, in a folder that others may have made. Throws
/// FileError where it is a link, no regular file, or has a second name: what would be written is
/// somebody else's.
Descriptor open_own(const std::filesystem::path& file, int flags, mode_t mode = 0);

/// Swaps two existing folders in one step (Linux's renameat2). False where the file system cannot.
bool exchange(const std::filesystem::path& a, const std::filesystem::path& b);

/// Removes a folder that has been replaced; where `former` is not empty, renames it so instead,
/// which replaces what has that name.
void put_away(const std::filesystem::path& replaced, const std::filesystem::path& former);

/// For file systems that cannot exchange: moves `target` to its aside "old", then `source` to
/// `target`, and puts the former content away. In between only AtomicDirectory::recover finds it.
void replace_in_two_steps(const std::filesystem::path& source, const std::filesystem::path& target,
                          const std::filesystem::path& former = {});

}  // namespace ringlet::posix
