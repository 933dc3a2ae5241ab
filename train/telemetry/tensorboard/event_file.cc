#include "train/telemetry/tensorboard/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "train/telemetry/tensorboard/crc32c.h"
#include "train/telemetry/tensorboard/event.pb.h"

namespace ringlet::train::tensorboard {

namespace {

constexpr std::size_t kFlushAt = std::size_t{1} << 16;
constexpr std::string_view kBeginOfName = "events.out.tfevents.";
constexpr std::string_view kOfEpoch = "epoch/";  // begin the tags of an epoch's event

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
  return fmt::format("{}{:017.6f}.{}.{}.{}", kBeginOfName, now(), host_name(), getpid(), number++);
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

/// The next event of a file; nothing at its end, or where it was cut off.
std::optional<Event> next_event(std::istream& file) {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 20;
  constexpr std::streamsize kCrc = sizeof(std::uint32_t);
  std::uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length).ignore(kCrc);
  if (!file || length > kLongest) return {};
  std::string bytes(length, '\0');
  file.read(bytes.data(), std::ssize(bytes)).ignore(kCrc);
  Event event;
  if (!file || !event.ParseFromString(bytes)) return {};
  return event;
}

bool is_of(const Event& event, std::string_view kind) {
  return event.summary().value_size() > 0 && event.summary().value(0).tag().starts_with(kind);
}

/// In the order in which TensorBoard reads them.
std::vector<std::filesystem::path> event_files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const bool named = entry.path().filename().string().starts_with(kBeginOfName);
    if (named && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int count_events(const std::filesystem::path& folder, std::int64_t step, std::string_view kind) {
  int count = 0;
  for (const std::filesystem::path& path : event_files_in(folder)) {
    std::ifstream file(path, std::ios::binary);
    while (const std::optional<Event> event = next_event(file)) {
      const bool begins = event->has_session() && event->session().status() == Session::START;
      if (begins && event->step() <= step) count = 0;
      if (event->step() == step && is_of(*event, kind)) ++count;
    }
  }
  return count;
}

}  // namespace

int count_epochs(const std::filesystem::path& folder, std::int64_t step) {
  return count_events(folder, step, kOfEpoch);
}

int count_verifications(const std::filesystem::path& folder, std::int64_t step) {
  return count_events(folder, step, kVerifyTag);
}

EventFile::EventFile(const std::filesystem::path& folder, std::int64_t first_step) {
  require_writable_directory(folder);
  constexpr int kReadable = 0666;
  do {  // once more where another container's process of this number took the name
    path_ = folder / file_name();
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kReadable);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) throw posix::file_error("create", path_, errno);
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
  } catch (const FileError&) {  // whoever wants to know has called flush()
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
  posix::write_all(descriptor_, path_, pending_.data(), pending_.size());
  pending_.clear();
}

}  // namespace ringlet::train::tensorboard
