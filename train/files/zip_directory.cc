#include "train/files/zip_directory.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/files/file_error.h"
#include "base/one_line.h"

namespace ringlet::train {

namespace {

constexpr std::string_view kEntryMark("PK\x03\x04"), kDirectoryMark("PK\x01\x02");
constexpr std::string_view kEndMark("PK\x05\x06"), kWideEndMark("PK\x06\x06");
constexpr std::string_view kWidePlaceMark("PK\x06\x07");
constexpr std::size_t kEntryHead = 30, kDirectoryHead = 46, kEnd = 22, kWideEnd = 56;
constexpr std::size_t kWidePlace = 20;
constexpr std::uint64_t kLongestText = 0xFFFF;         // a name, a comment
constexpr std::uint64_t kWide = 0xFFFFFFFF;            // the number stands in the zip64 part
constexpr std::uint64_t kMostDirectory = 100'000'000;  // as of a safetensors header

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, width);
  return value;
}

struct Listed {
  ZipEntry entry;
  std::uint64_t head = 0;  // where its own header lies
};

class ZipReader {
 public:
  ZipReader(std::istream& archive, std::uint64_t bytes, const std::string& file)
      : archive_(archive), bytes_(bytes), file_(file) {}

  std::vector<ZipEntry> read() {
    find_directory();
    std::vector<Listed> listed = read_listed();
    std::sort(listed.begin(), listed.end(),
              [](const Listed& a, const Listed& b) { return a.head < b.head; });
    require_names_once(listed);
    std::vector<ZipEntry> entries;
    std::uint64_t end = 0;
    for (Listed& one : listed) {
      if (one.head < end) {
        fail("its entry '" + shown(one.entry.name) + "' overlaps the one before it");
      }
      end = place(one);
      entries.push_back(std::move(one.entry));
    }
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(file_ + ": " + what + "; fetch or save the file again");
  }
  [[noreturn]] void damaged(const std::string& what) const {
    fail("the zip archive is damaged (" + what + ")");
  }
  static std::string shown(const std::string& name) {
    constexpr std::size_t kLongest = 200;
    return on_one_line(name, kLongest);
  }

  std::string take(std::uint64_t from, std::uint64_t count) const {
    if (from > bytes_ || count > bytes_ - from) damaged("it points outside of the file");
    std::string bytes(count, '\0');
    archive_.clear();
    archive_.seekg(static_cast<std::streamoff>(from));
    archive_.read(bytes.data(), static_cast<std::streamsize>(count));
    if (!archive_) throw FileError(file_ + ": cannot be read to its end; check the disk");
    return bytes;
  }

  /// By the mark behind which a comment ends with the file.
  void find_directory() {
    const std::uint64_t tail = std::min(bytes_, kEnd + kLongestText);
    const std::string last = take(bytes_ - tail, tail);
    for (std::size_t at = last.rfind(kEndMark); at != std::string::npos;
         at = at == 0 ? std::string::npos : last.rfind(kEndMark, at - 1)) {
      constexpr std::size_t kComment = 20;
      if (last.size() - at < kEnd || number(last, at + kComment, 2) != last.size() - at - kEnd) {
        continue;
      }
      return read_end(last.substr(at, kEnd), bytes_ - tail + at);
    }
    fail("truncated: the zip archive has no directory at its end");
  }

  void read_end(const std::string& end, std::uint64_t at) {
    limit_ = at;
    entries_ = number(end, 10, 2);
    directory_bytes_ = number(end, 12, 4);
    directory_ = number(end, 16, 4);
    const bool wide = entries_ == kLongestText || directory_bytes_ == kWide || directory_ == kWide;
    if (wide && at >= kWidePlace) read_wide_end(at - kWidePlace);
    if (directory_ > limit_ || directory_bytes_ > limit_ - directory_) {
      damaged("its directory lies outside of the file");
    }
    if (directory_bytes_ > kMostDirectory || entries_ > directory_bytes_ / kDirectoryHead) {
      damaged("its directory cannot have " + std::to_string(entries_) + " entries");
    }
  }

  void read_wide_end(std::uint64_t at) {
    const std::string place = take(at, kWidePlace);
    if (!place.starts_with(kWidePlaceMark)) return;
    const std::uint64_t record = number(place, 8, 8);
    if (record > at) damaged("it points outside of the file");
    const std::string end = take(record, kWideEnd);
    if (!end.starts_with(kWideEndMark)) damaged("its zip64 record is none");
    limit_ = record;
    entries_ = number(end, 32, 8);
    directory_bytes_ = number(end, 40, 8);
    directory_ = number(end, 48, 8);
  }

  std::vector<Listed> read_listed() const {
    const std::string directory = take(directory_, directory_bytes_);
    std::vector<Listed> listed;
    std::string_view rest = directory;
    for (std::uint64_t i = 0; i < entries_; ++i) {
      if (rest.size() < kDirectoryHead || !rest.starts_with(kDirectoryMark)) {
        damaged("entry " + std::to_string(i) + " of its directory is none");
      }
      const std::uint64_t name = number(rest, 28, 2), extra = number(rest, 30, 2);
      const std::uint64_t all = kDirectoryHead + name + extra + number(rest, 32, 2);
      if (all > rest.size()) damaged("entry " + std::to_string(i) + " of its directory is cut off");
      listed.push_back(read_one(rest.substr(0, kDirectoryHead), rest.substr(kDirectoryHead, name),
                                rest.substr(kDirectoryHead + name, extra)));
      rest.remove_prefix(all);
    }
    return listed;
  }

  Listed read_one(std::string_view head, std::string_view name, std::string_view extra) const {
    Listed one{.entry = {.name = std::string(name), .bytes = number(head, 24, 4)},
               .head = number(head, 42, 4)};
    std::uint64_t stored = number(head, 20, 4);
    std::string_view wide = wide_numbers(extra);
    for (std::uint64_t* value : {&one.entry.bytes, &stored, &one.head}) {
      if (*value != kWide || wide.size() < sizeof *value) continue;
      *value = number(wide, 0, sizeof *value);
      wide.remove_prefix(sizeof *value);
    }
    if ((number(head, 8, 2) & 1) != 0)
      fail("its entry '" + shown(one.entry.name) + "' is encrypted");
    if (number(head, 10, 2) != 0) {
      throw FileError(file_ + ": its entry '" + shown(one.entry.name) +
                      "' is compressed, which torch.save() does not do; unpack the archive, and "
                      "pack it without compression (zip -0)");
    }
    if (stored != one.entry.bytes) {
      damaged("two sizes of its entry '" + shown(one.entry.name) + "'");
    }
    return one;
  }

  /// The numbers of the zip64 part: those that 32 bits do not hold, in their order.
  static std::string_view wide_numbers(std::string_view extra) {
    constexpr std::size_t kHead = 4;
    while (extra.size() >= kHead) {
      const std::uint64_t size = number(extra, 2, 2);
      if (size > extra.size() - kHead) return {};
      if (number(extra, 0, 2) == 1) return extra.substr(kHead, size);
      extra.remove_prefix(kHead + size);
    }
    return {};
  }

  void require_names_once(const std::vector<Listed>& listed) const {
    std::vector<std::string_view> names;
    for (const Listed& one : listed) names.push_back(one.entry.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      fail("there are two entries '" + shown(std::string(*twice)) + "' in the archive");
    }
  }

  /// Where its bytes begin, and where they end.
  std::uint64_t place(Listed& one) const {
    const std::string head = take(one.head, kEntryHead);
    const std::uint64_t name = number(head, 26, 2);
    if (!head.starts_with(kEntryMark) || take(one.head + kEntryHead, name) != one.entry.name) {
      damaged("where its entry '" + shown(one.entry.name) + "' should lie there is another");
    }
    one.entry.begin = one.head + kEntryHead + name + number(head, 28, 2);
    if (one.entry.begin > directory_ || one.entry.bytes > directory_ - one.entry.begin) {
      damaged("its entry '" + shown(one.entry.name) + "' reaches beyond its directory");
    }
    return one.entry.begin + one.entry.bytes;
  }

  std::istream& archive_;
  std::uint64_t bytes_;
  const std::string& file_;
  std::uint64_t limit_ = 0, entries_ = 0, directory_ = 0, directory_bytes_ = 0;
};

}  // namespace

std::vector<ZipEntry> read_zip_directory(std::istream& archive, std::uint64_t bytes,
                                         const std::string& file) {
  return ZipReader(archive, bytes, file).read();
}

}  // namespace ringlet::train
