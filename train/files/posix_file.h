// The system calls behind atomic_file.h, with errors as FileError instead of errno.
#pragma once

#include <cstddef>
#include <filesystem>

#include "train/files/atomic_file.h"

namespace ringlet::train::posix {

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

/// "PATH.tmp.4711" for the suffix "tmp" in process 4711.
std::filesystem::path aside_of(const std::filesystem::path& path, const char* suffix);

/// Whether `name` is an aside of a file called `target`: "TARGET.SUFFIX.digits".
bool is_aside(const std::string& name, const std::string& target, const char* suffix);

/// Whether an aside was made by a process that no longer runs.
bool is_abandoned(const std::string& aside);

/// Removes the asides of `target` whose writers no longer run. Never throws.
void remove_abandoned(const std::filesystem::path& target, const char* suffix) noexcept;

/// Swaps two existing folders in one step (Linux's renameat2). False where the file system cannot.
bool exchange(const std::filesystem::path& a, const std::filesystem::path& b);

/// Removes a folder that has been replaced; where `former` is not empty, renames it so instead, in
/// place of what has that name.
void put_away(const std::filesystem::path& replaced, const std::filesystem::path& former);

/// For file systems that cannot exchange: moves `target` to its aside "old", then `source` to
/// `target`, and puts the former content away. In between only AtomicDirectory::recover finds it.
void replace_in_two_steps(const std::filesystem::path& source, const std::filesystem::path& target,
                          const std::filesystem::path& former = {});

}  // namespace ringlet::train::posix
