// EventFile: a file that TensorBoard reads. A record is
//
//   u64 length | u32 masked CRC-32C of those 8 bytes | the event | u32 masked CRC-32C of the event
//
// in little-endian, and an event a protocol buffer (event.proto). The file's name is
// "events.out.tfevents.SECONDS.MICROSECONDS.HOST.PROCESS.NUMBER"; every run has files of its own,
// and TensorBoard reads all that lie in a folder in the order of their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace ringlet::train::tensorboard {

class Event;

/// The events of epochs after `step` that count in the files of `folder`: those of which no later
/// file says that it goes on at that step or before. What is no event file is passed over.
int count_epochs(const std::filesystem::path& folder, std::int64_t step);
/// The same of verifications, whose tags begin so.
int count_verifications(const std::filesystem::path& folder, std::int64_t step);
inline const std::string kVerifyTag = "verify/";

class EventFile {
 public:
  /// Makes a file in `folder`, which is made if it is not there. TensorBoard then ignores what
  /// earlier files in it say of `first_step` and later steps. Throws FileError.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step);
  /// Flushes; an error is lost.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Appends an event whose time is now. It is in the file at the latest with the next flush().
  void add(Event& event);
  /// Throws FileError.
  void flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string event_;    // serialised; kept for its memory
  std::string pending_;  // records that are not in the file yet
};

}  // namespace ringlet::train::tensorboard
