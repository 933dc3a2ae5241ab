// RunLock: a run's claim to its folder. While it is held, no other run gets it.
//
//   OUT/.ringlet.lock   flock(2), "process 4711 on HOST"
//
// The system lets go of the lock when the process ends, however it ends. So a file that a killed
// run has left behind bars nobody. Where the file system has no locks (some NFS), runs are not kept
// apart; that stops none. A folder may come from anybody: a link, a pipe or a file with a second
// name that is called so is refused, for it would be somebody else's file that is written.
#pragma once

#include <filesystem>

#include "base/descriptor.h"

namespace ringlet::train {

class RunLock {
 public:
  /// Claims a folder that is there. Throws FileError, which names who holds it, or what is no file
  /// of a run's.
  explicit RunLock(const std::filesystem::path& folder);
  /// Gives it back and removes the file, where that is still there.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Throws FileError where the folder's name leads to another one by now, which may be another
  /// run's, or where another run has claimed it. To be asked before anything is written by name.
  void require_held() const;

  /// Throws FileError where a run holds the folder. Claims and writes nothing.
  static void require_free(const std::filesystem::path& folder);

 private:
  std::filesystem::path file_;
  Descriptor folder_, descriptor_;
};

}  // namespace ringlet::train
