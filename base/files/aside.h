// Asides: what a writer has under a name of its own, beside the name that it is for.
//
//   NAME.tmp.HOST.BOOT.RANDOM   it is being written
//   NAME.old.HOST.BOOT.RANDOM   it was replaced, where the system cannot exchange two folders
//
// HOST is the machine's name, BOOT 16 hexadecimal digits of its boot id, RANDOM eight.
//
// Whoever has an aside holds its lock (flock), until the aside has its name or is gone. The system
// lets go of a lock when the process ends, however it ends, and knows it in every container on one
// kernel. A process number is known in one of them only. So an aside is dead where it was made on
// this machine since its start, and nobody holds its lock. Nothing else is ever removed: no aside
// of another machine or of the time before a restart, and no file whose name has another form.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace ringlet::posix {

/// A file or folder that has been made, and its lock. No path: it could not be made.
struct Aside {
  std::filesystem::path path;
  Descriptor lock;  ///< of a file, open for writing
};

/// Makes one for `target`. Without a path, and with errno set, where that fails.
Aside make_aside_file(const std::filesystem::path& target);
Aside make_aside_folder(const std::filesystem::path& target);

/// Another name for an aside with each call. `suffix`: "tmp" or "old".
std::filesystem::path aside_of(const std::filesystem::path& target, const char* suffix);

/// All asides of `target` that are there, of whatever machine.
std::vector<std::filesystem::path> asides_of(const std::filesystem::path& target,
                                             const char* suffix);

/// Locks a folder that gets an aside's name. Empty where that cannot be done.
Descriptor lock_folder(const std::filesystem::path& folder);

/// The lock of an aside that is dead. Empty where it is not, or where that cannot be proved.
Descriptor lock_if_dead(const std::filesystem::path& aside);

/// Removes the asides of `target` that are dead. Never throws.
void remove_dead_asides(const std::filesystem::path& target, const char* suffix) noexcept;

}  // namespace ringlet::posix
