#include "base/files/aside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/posix_file.h"
#include "base/machine.h"

namespace ringlet::posix {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBootDigits = 16, kRandomDigits = 8;
constexpr std::size_t kLongestHost = 40;
constexpr std::size_t kLongestName = 255;  // that file systems take
constexpr std::size_t kLongestStem = kLongestName - std::string_view(".tmp.").size() -
                                     kLongestHost - kBootDigits - kRandomDigits - 2;

bool is_hex(char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); }

/// "HOST.BOOT." of this machine since its start.
const std::string& this_machine() {
  static const std::string kTag = [] {
    std::string host = host_name().substr(0, kLongestHost), boot = boot_id();
    std::ranges::replace_if(
        host, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '-');
    std::erase_if(boot, [](char c) { return !is_hex(c); });
    boot.resize(kBootDigits, '0');
    return fmt::format("{}.{}.", host, boot);
  }();
  return kTag;
}

/// "NAME.SUFFIX.", how the names of a file's asides begin.
std::string beginning(const fs::path& target, const char* suffix) {
  return fmt::format("{}.{}.", target.filename().string().substr(0, kLongestStem), suffix);
}

/// Whether `text` is "HOST.BOOT.RANDOM".
bool is_tag(std::string_view text) {
  constexpr std::size_t kBehindHost = 1 + kBootDigits + 1 + kRandomDigits;
  if (text.size() <= kBehindHost) return false;
  const std::string_view end = text.substr(text.size() - kBehindHost);
  const std::string_view boot = end.substr(1, kBootDigits), random = end.substr(kBootDigits + 2);
  return end.front() == '.' && end[kBootDigits + 1] == '.' && std::ranges::all_of(boot, is_hex) &&
         std::ranges::all_of(random, is_hex);
}

/// Whether an aside was made on this machine since its start. Where no boot id can be read, nobody
/// knows.
bool is_of_this_machine(const fs::path& aside) {
  const std::string name = aside.filename().string(), &tag = this_machine();
  if (boot_id().empty() || name.size() < tag.size() + kRandomDigits) return false;
  const std::string_view begin(name.data(), name.size() - kRandomDigits);
  return std::ranges::any_of(std::array{".tmp.", ".old."},
                             [&](const char* suffix) { return begin.ends_with(suffix + tag); });
}

bool lock(const Descriptor& descriptor) {
  return ::flock(descriptor.get(), LOCK_EX | LOCK_NB) == 0;
}

/// Locks what was just made. False where another took it for dead before, and removes it. Where
/// the file system has no locks, nobody can take it for dead.
bool keep(const Aside& aside) {
  if (!lock(aside.lock)) return errno != EWOULDBLOCK;
  return is_name_of(aside.path, aside.lock);
}

Descriptor open_folder(const fs::path& folder) {
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

fs::path aside_of(const fs::path& target, const char* suffix) {
  return parent_of(target) / fmt::format("{}{}{:08x}", beginning(target, suffix), this_machine(),
                                         std::random_device{}());
}

Aside make_aside_file(const fs::path& target) {
  constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  while (true) {
    Aside aside{aside_of(target, "tmp"), {}};
    aside.lock = Descriptor(
        ::open(aside.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (!aside.lock.open() && errno != EEXIST) return {};
    if (aside.lock.open() && keep(aside)) return aside;
  }
}

Aside make_aside_folder(const fs::path& target) {
  while (true) {
    Aside aside{aside_of(target, "tmp"), {}};
    if (::mkdir(aside.path.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) != 0) {
      if (errno == EEXIST) continue;
      return {};
    }
    aside.lock = open_folder(aside.path);
    const bool is_gone = !aside.lock.open() && errno == ENOENT;
    if (!is_gone && keep(aside)) return aside;
  }
}

std::vector<fs::path> asides_of(const fs::path& target, const char* suffix) {
  const std::string begin = beginning(target, suffix);
  std::vector<fs::path> asides;
  std::error_code error;
  for (fs::directory_iterator entry(parent_of(target), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(begin) && is_tag(std::string_view(name).substr(begin.size()))) {
      asides.push_back(entry->path());
    }
  }
  return asides;
}

Descriptor lock_folder(const fs::path& folder) {
  Descriptor descriptor = open_folder(folder);
  if (!descriptor.open() || !lock(descriptor)) return {};
  return descriptor;
}

Descriptor lock_if_dead(const fs::path& aside) {
  if (!is_of_this_machine(aside)) return {};
  Descriptor descriptor(::open(aside.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!descriptor.open() && errno == EISDIR) descriptor = open_folder(aside);
  if (!descriptor.open() || !lock(descriptor) || !is_name_of(aside, descriptor)) return {};
  return descriptor;
}

void remove_dead_asides(const fs::path& target, const char* suffix) noexcept {
  try {
    for (const fs::path& aside : asides_of(target, suffix)) {
      std::error_code error;
      if (const Descriptor held = lock_if_dead(aside); held.open()) fs::remove_all(aside, error);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): what cannot be tidied up is left for later
  }
}

}  // namespace ringlet::posix
