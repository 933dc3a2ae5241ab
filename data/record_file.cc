#include "data/record_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <istream>

#include "base/data_error.h"
#include "data/images/image_format.h"

namespace ringlet::data {

static_assert(std::endian::native == std::endian::little, "a .rec is read as it lies in memory");

namespace {

constexpr std::uint64_t kPartHead = 8, kHead = 24;
constexpr std::size_t kFirstBytes = 8;  // of a picture, which tell its kind

enum PartKind : std::uint32_t { kWholePart = 0, kFirstPart = 1, kMiddlePart = 2, kLastPart = 3 };

template <class T>
T value_at(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

template <class T>
void append(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_part(std::string& record, PartKind kind, std::span<const std::uint8_t> payload) {
  append(record, kRecordMagic);
  append(record, kind << 29 | static_cast<std::uint32_t>(payload.size()));
  record.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  record.append(padded(payload.size()) - payload.size(), '\0');
}

}  // namespace

void RecordFile::fail(std::uint64_t offset, const std::string& what) const {
  throw DataError(file_.name() + ": the record at byte " + std::to_string(offset) + " " + what);
}

RecordFile::Whole RecordFile::join(std::uint64_t offset, std::uint64_t most,
                                   std::vector<std::uint8_t>& payload) const {
  payload.clear();
  Whole record{.end = offset};
  const auto keep = [&](std::uint64_t bytes, std::uint64_t from, const std::uint8_t* word) {
    record.bytes += bytes;
    if (payload.size() >= most) return;
    const std::uint64_t taken = std::min(bytes, most - payload.size());
    const std::size_t before = payload.size();
    payload.resize(before + taken);
    if (word != nullptr) {
      std::memcpy(payload.data() + before, word, taken);
    } else {
      file_.read(from, std::span(payload).subspan(before));
    }
  };
  for (bool begun = false;; begun = true) {
    std::uint8_t head[kPartHead];
    const std::uint64_t left = file_.bytes() - std::min(file_.bytes(), record.end);
    if (left < kPartHead) {
      if (begun) fail(offset, "lacks its last part; fetch the file again");
      fail(offset, "is cut short: it has " + std::to_string(left) +
                       " bytes, less than a head; fetch the file again");
    }
    file_.read(record.end, head);
    if (value_at<std::uint32_t>(head) != kRecordMagic) {
      if (begun) fail(offset, "lacks its last part; fetch the file again");
      fail(offset,
           "does not begin with RecordIO's magic word; the file is none, or its .idx is another "
           "file's: move the .idx away, and records are found without");
    }
    const std::uint32_t kind = value_at<std::uint32_t>(head + 4) >> 29;
    const std::uint64_t bytes = value_at<std::uint32_t>(head + 4) & kMostPartBytes;
    if (kind > kLastPart) fail(offset, "has a part of an unknown kind; fetch the file again");
    if (begun && (kind == kWholePart || kind == kFirstPart)) {
      fail(offset, "lacks its last part; fetch the file again");
    }
    if (!begun && (kind == kMiddlePart || kind == kLastPart)) {
      fail(offset, "lacks its first part; fetch the file again");
    }
    if (padded(bytes) > left - kPartHead) {
      fail(offset, "is cut short: it says " + std::to_string(bytes) + " bytes, and " +
                       std::to_string(left - kPartHead) + " are left; fetch the file again");
    }
    const std::uint32_t magic = kRecordMagic;
    if (begun) keep(sizeof magic, 0, reinterpret_cast<const std::uint8_t*>(&magic));
    keep(bytes, record.end + kPartHead, nullptr);
    record.end += kPartHead + padded(bytes);
    if (kind == kWholePart || kind == kLastPart) return record;
  }
}

RecordHead RecordFile::head(std::uint64_t offset) const {
  thread_local std::vector<std::uint8_t> bytes;
  constexpr std::uint64_t kUsual = kHead + 2 * sizeof(float) + kFirstBytes;
  Whole record = join(offset, kUsual, bytes);
  if (record.bytes < kHead) fail(offset, "is shorter than a picture's head; fetch the file again");
  RecordHead head{.flag = value_at<std::uint32_t>(bytes.data()), .end = record.end};
  const std::uint64_t before = kHead + std::uint64_t{head.flag} * sizeof(float);
  if (before > record.bytes) {
    fail(offset,
         "has no room for its " + std::to_string(head.flag) + " labels; fetch the file again");
  }
  head.labels[0] = value_at<float>(bytes.data() + 4);
  for (std::uint32_t i = 0; i < std::min(head.flag, 2U); ++i) {
    head.labels[i] = value_at<float>(bytes.data() + kHead + i * sizeof(float));
  }
  head.picture_bytes = record.bytes - before;
  if (head.flag > 2) join(offset, before + kFirstBytes, bytes);
  if (head.picture_bytes > 0) {
    const auto picture = std::span(bytes).subspan(before);
    head.is_picture = image_format(picture) != ImageFormat::unknown;
  }
  return head;
}

void RecordFile::picture(std::uint64_t offset, std::vector<std::uint8_t>& bytes) const {
  const Whole record = join(offset, file_.bytes(), bytes);
  const std::uint64_t before =
      record.bytes < kHead
          ? kHead
          : kHead + std::uint64_t{value_at<std::uint32_t>(bytes.data())} * sizeof(float);
  if (before >= record.bytes) fail(offset, "holds no picture; fetch the file again");
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(before));
}

std::vector<IndexEntry> read_record_index(std::istream& lines, const std::string& name,
                                          const std::string& records, std::uint64_t bytes) {
  std::vector<IndexEntry> entries;
  std::string line;
  std::uint64_t number = 0;
  const auto fail = [&](const std::string& what) {
    throw DataError(name + ": line " + std::to_string(number) + " " + what);
  };
  while (std::getline(lines, line)) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    IndexEntry entry;
    const char* const end = line.data() + line.size();
    const auto key = std::from_chars(line.data(), end, entry.key);
    const bool parted = key.ec == std::errc() && key.ptr != end && *key.ptr == '\t';
    const auto offset = parted ? std::from_chars(key.ptr + 1, end, entry.offset) : key;
    if (!parted || offset.ec != std::errc() || offset.ptr != end) {
      fail("is no KEY TAB OFFSET; move the file away, and records are found without");
    }
    if (entry.offset % 4 != 0 || entry.offset >= bytes) {
      fail("has byte " + std::to_string(entry.offset) + ", where no record of " + records +
           " can begin: it is another file's; move it away, and records are found without");
    }
    entries.push_back(entry);
  }
  const auto by_key = [](const IndexEntry& a, const IndexEntry& b) { return a.key < b.key; };
  if (!std::is_sorted(entries.begin(), entries.end(), by_key)) {
    std::stable_sort(entries.begin(), entries.end(), by_key);
  }
  const auto twice =
      std::adjacent_find(entries.begin(), entries.end(),
                         [](const IndexEntry& a, const IndexEntry& b) { return a.key == b.key; });
  if (twice != entries.end()) {
    throw DataError(name + ": the key " + std::to_string(twice->key) +
                    " is there twice; move the file away, and records are found without");
  }
  return entries;
}

std::string as_record(std::span<const std::uint8_t> payload) {
  std::string record;
  std::size_t begin = 0;
  PartKind kind = kFirstPart;
  for (std::size_t at = 0; at + sizeof kRecordMagic <= payload.size(); at += 4) {
    if (value_at<std::uint32_t>(payload.data() + at) != kRecordMagic) continue;
    append_part(record, kind, payload.subspan(begin, at - begin));
    begin = at + sizeof kRecordMagic;
    kind = kMiddlePart;
  }
  append_part(record, kind == kFirstPart ? kWholePart : kLastPart, payload.subspan(begin));
  return record;
}

std::string record_payload(std::span<const float> labels, std::uint64_t id,
                           std::span<const std::uint8_t> picture) {
  std::string payload;
  const bool in_head = labels.size() == 1;
  append(payload, in_head ? 0U : static_cast<std::uint32_t>(labels.size()));
  append(payload, in_head ? labels[0] : 0.0F);
  append(payload, id);
  append(payload, std::uint64_t{0});
  if (!in_head) {
    for (const float label : labels) append(payload, label);
  }
  payload.append(reinterpret_cast<const char*>(picture.data()), picture.size());
  return payload;
}

}  // namespace ringlet::data
