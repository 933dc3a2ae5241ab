#include "data/record_list.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

#include "base/data_error.h"
#include "base/files/atomic_file.h"
#include "base/hash.h"
#include "data/in_parallel.h"
#include "data/unseen_targets.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

int reading_threads() {
  constexpr unsigned kMost = 16;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

std::int32_t checked_label(const RecordFile& records, std::uint64_t offset, float label) {
  if (label >= 0 && label <= static_cast<float>(kMostRecordLabel) && label == std::floor(label)) {
    return static_cast<std::int32_t>(label);
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%g", std::isnan(label) ? std::fabs(label) : label);
  throw DataError(records.file().name() + ": the record at byte " + std::to_string(offset) +
                  " has the label " + digits + ", where whole numbers from 0 to " +
                  std::to_string(kMostRecordLabel) + " stand; write the file anew");
}

void add(const RecordFile& records, const IndexEntry& entry, const RecordHead& head, bool is_first,
         RecordList& list) {
  if (head.picture_bytes == 0) {
    if (is_first && head.flag == 2) list.told = head.labels[0];
    return;
  }
  if (!head.is_picture && list.strange++ == 0) list.first_strange = entry.offset;
  list.keys.push_back(entry.key);
  list.offsets.push_back(entry.offset);
  list.labels.push_back(checked_label(records, entry.offset, head.labels[0]));
}

/// Goes from record to record.
RecordList scanned(const RecordFile& records, const StopRequest& stop) {
  RecordList list;
  IndexEntry entry;
  while (entry.offset < records.file().bytes()) {
    stop_if(stop);
    const RecordHead head = records.head(entry.offset);
    if (entry.key == 0 && head.picture_bytes > 0) entry.key = 1;  // there is no record 0
    add(records, entry, head, entry.key == 0, list);
    ++entry.key;
    entry.offset = head.end;
  }
  return list;
}

/// Looks at the records that an `.idx` names, a thousand at a time on each thread.
RecordList looked_up(const RecordFile& records, const std::vector<IndexEntry>& entries,
                     const StopRequest& stop) {
  constexpr std::int64_t kBlock = 1024;
  const std::int64_t count = std::ssize(entries);
  std::vector<RecordList> blocks(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  in_parallel(
      std::ssize(blocks), reading_threads(),
      [&](std::int64_t block) {
        RecordList& mine = blocks[static_cast<std::size_t>(block)];
        for (std::int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
          const IndexEntry& entry = entries[static_cast<std::size_t>(i)];
          add(records, entry, records.head(entry.offset), entry.key == 0, mine);
        }
      },
      stop);
  RecordList list;
  for (RecordList& block : blocks) {
    list.keys.insert(list.keys.end(), block.keys.begin(), block.keys.end());
    list.offsets.insert(list.offsets.end(), block.offsets.begin(), block.offsets.end());
    list.labels.insert(list.labels.end(), block.labels.begin(), block.labels.end());
    if (list.strange == 0) list.first_strange = block.first_strange;
    list.strange += block.strange;
    list.told = std::max(list.told, block.told);
    block = {};
  }
  return list;
}

/// What the kept list begins with. The files that it is of come first.
struct KeptHead {
  char magic[8] = {'R', 'I', 'N', 'G', 'L', 'B', 'L', '1'};
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;
  std::uint64_t index_bytes = 0;
  std::int64_t index_modified = 0;
  std::uint64_t pictures = 0;
  std::uint64_t strange = 0;
  std::uint64_t first_strange = 0;
  float told = 0;
  std::uint32_t unused = 0;

  bool is_of(const KeptHead& now) const {
    return std::memcmp(this, &now, offsetof(KeptHead, pictures)) == 0;
  }
};

template <class T>
std::string_view as_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::uint64_t hash_of(const KeptHead& head, const RecordList& list) {
  std::uint64_t hash = hash_bytes(&head, sizeof head);
  for (const std::string_view part :
       {as_bytes(list.keys), as_bytes(list.offsets), as_bytes(list.labels)}) {
    hash = hash_bytes(part.data(), part.size(), hash);
  }
  return hash;
}

/// Nothing where there is none, or one of other files, or one that is damaged.
std::optional<RecordList> kept_list(const fs::path& kept, const KeptHead& now) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(kept, error);
  std::ifstream stream(kept, std::ios::binary);
  KeptHead head;
  const auto read = [&stream](void* to, std::size_t count) {
    stream.read(static_cast<char*>(to), static_cast<std::streamsize>(count));
  };
  if (error || bytes < sizeof head || !stream) return {};
  read(&head, sizeof head);
  constexpr std::uint64_t kEach = 2 * sizeof(std::uint64_t) + sizeof(std::int32_t);
  const std::uintmax_t rest = bytes - sizeof head;
  if (!stream || !head.is_of(now) || rest % kEach != sizeof(std::uint64_t) ||
      head.pictures != rest / kEach) {
    return {};
  }
  RecordList list;
  list.told = head.told;
  list.strange = head.strange;
  list.first_strange = head.first_strange;
  list.keys.resize(head.pictures);
  list.offsets.resize(head.pictures);
  list.labels.resize(head.pictures);
  read(list.keys.data(), as_bytes(list.keys).size());
  read(list.offsets.data(), as_bytes(list.offsets).size());
  read(list.labels.data(), as_bytes(list.labels).size());
  std::uint64_t hash = 0;
  read(&hash, sizeof hash);
  if (!stream || hash != hash_of(head, list)) return {};
  return list;
}

/// Writes it where that can be done; a folder that takes no files is no fault. A file of that name
/// that is another's stays.
void keep(const fs::path& kept, KeptHead head, const RecordList& list) {
  std::error_code error;
  if (fs::exists(kept, error)) {
    char magic[sizeof head.magic] = {};
    std::ifstream(kept, std::ios::binary).read(magic, sizeof magic);
    if (std::memcmp(magic, head.magic, sizeof magic) != 0) return;
  }
  head.pictures = list.keys.size();
  head.strange = list.strange;
  head.first_strange = list.first_strange;
  head.told = list.told;
  try {
    AtomicFile file(kept);
    file.write(&head, sizeof head);
    file.write(as_bytes(list.keys));
    file.write(as_bytes(list.offsets));
    file.write(as_bytes(list.labels));
    const std::uint64_t hash = hash_of(head, list);
    file.write(&hash, sizeof hash);
    file.commit();
  } catch (const FileError&) {
  }
}

}  // namespace

RecordList list_records(const RecordFile& records, const StopRequest& stop) {
  fs::path index = records.file().name(), kept = index;
  index.replace_extension(".idx");
  kept.replace_extension(".labels");
  KeptHead now;
  now.bytes = records.file().bytes();
  now.modified = records.file().modified();
  std::error_code error;
  const bool has_index = fs::exists(index, error);
  if (has_index) {
    const StoredFile file(index);
    now.index_bytes = file.bytes();
    now.index_modified = file.modified();
  }
  std::optional<RecordList> list = kept_list(kept, now);
  if (!list) {
    if (has_index) {
      std::ifstream lines(index);
      list = looked_up(records,
                       read_record_index(lines, index.string(), records.file().name(), now.bytes),
                       stop);
    } else {
      list = scanned(records, stop);
    }
    if (!list->keys.empty()) keep(kept, now, *list);
  }
  if (list->keys.empty()) {
    throw DataError(records.file().name() +
                    ": no record of it holds a picture; name a .rec with pictures");
  }
  list->identities = 1 + std::int64_t{*std::ranges::max_element(list->labels)};
  return *std::move(list);
}

std::vector<std::string> identity_names(std::int64_t identities) {
  const std::size_t digits = std::to_string(std::max<std::int64_t>(identities - 1, 0)).size();
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(identities));
  for (std::int64_t k = 0; k < identities; ++k) {
    const std::string number = std::to_string(k);
    names.push_back(std::string(digits - number.size(), '0') + number);
  }
  return names;
}

std::vector<std::string> notes_on(const std::string& records, const RecordList& list) {
  std::vector<std::string> notes;
  const auto pictures = static_cast<float>(list.keys.size() + 1);
  if (list.told != 0 && list.told != pictures) {
    char told[32];
    std::snprintf(told, sizeof told, "%.0f", list.told - 1);
    notes.push_back(records + ": its first record tells of " + told + " pictures, and there are " +
                    std::to_string(list.keys.size()));
  }
  const std::string unseen = unseen_targets(list.labels, identity_names(list.identities));
  if (!unseen.empty()) notes.push_back(records + ": no picture has the labels " + unseen);
  return notes;
}

}  // namespace ringlet::data
