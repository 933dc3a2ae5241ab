#include "train/telemetry/tensorboard/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "train/files/atomic_file.h"
#include "train/files/posix_file.h"
#include "train/telemetry/tensorboard/crc32c.h"
#include "train/telemetry/tensorboard/event.pb.h"

namespace ringlet::train::tensorboard {

namespace {

constexpr std::size_t kFlushAt = std::size_t{1} << 16;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  std::string host = name.data();
  for (char& c : host) {
    if (c == '/') c = '-';
  }
  return host;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// TensorBoard reads a folder's files in the order of their names. With whole seconds alone, the
/// file of a run that is resumed at once could come before its beginning.
std::string file_name() {
  static std::atomic<int> number{0};
  return fmt::format("events.out.tfevents.{:017.6f}.{}.{}.{}", now(), host_name(), getpid(),
                     number++);
}

template <class Number>
void append_little_endian(std::string& bytes, Number number) {
  static_assert(std::endian::native == std::endian::little);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_record(std::string& bytes, const std::string& event) {
  const std::size_t begin = bytes.size();
  append_little_endian(bytes, static_cast<std::uint64_t>(event.size()));
  append_little_endian(bytes, masked_crc32c(std::string_view(bytes).substr(begin)));
  bytes += event;
  append_little_endian(bytes, masked_crc32c(event));
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, std::int64_t first_step) {
  train::require_writable_directory(folder);
  path_ = folder / file_name();
  constexpr int kReadable = 0666;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kReadable);
  if (descriptor_ < 0) throw train::posix::file_error("create", path_, errno);
  Event version;
  version.set_file_version("brain.Event:2");
  add(version);
  Event start;
  start.set_step(first_step);
  start.mutable_session()->set_status(Session::START);
  add(start);
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const train::FileError&) {  // whoever wants to know has called flush()
  }
  ::close(descriptor_);
}

void EventFile::add(Event& event) {
  event.set_wall_time(now());
  event.SerializeToString(&event_);
  append_record(pending_, event_);
  if (pending_.size() >= kFlushAt) flush();
}

void EventFile::flush() {
  train::posix::write_all(descriptor_, path_, pending_.data(), pending_.size());
  pending_.clear();
}

}  // namespace ringlet::train::tensorboard
