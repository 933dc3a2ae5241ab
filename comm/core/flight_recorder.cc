#include "comm/core/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "base/trace.h"

namespace ringlet::comm {

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::none:
      return "exchange";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::barrier:
      return "barrier";
    case CollectiveKind::activation:
      return "activation";
    case CollectiveKind::gradient:
      return "gradient";
  }
  return "?";
}

const char* lasting(const std::string& text) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;  // others may read until the very end
  const std::lock_guard lock(mutex);
  return texts->insert(text).first->c_str();
}

std::string describe(const MessageName& message) {
  return fmt::format("{} of micro-batch {}", name_of(message.kind), message.micro_batch);
}

std::string describe(const CollectiveRecord& record) {
  if (is_message(record.tag)) {
    return describe(
        MessageName{record.tag.kind, static_cast<std::int32_t>(record.tag.sequence - 1)});
  }
  const char* separator = record.name[0] == 0 ? "" : " ";
  return fmt::format("#{} {}{}{}", record.tag.sequence, name_of(record.tag.kind), separator,
                     record.name.data());
}

// A reader that sees anything of a change sees the odd version before it or a later one: the stores
// release, the loads acquire.

struct SharedRecord::Changing {
  explicit Changing(std::atomic<std::uint64_t>& of) : version(of) {
    version.store(++number, std::memory_order_relaxed);
  }
  ~Changing() { version.store(++number, std::memory_order_release); }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

  std::atomic<std::uint64_t>& version;
  std::uint64_t number = version.load(std::memory_order_relaxed);
};

void SharedRecord::enter(const CollectiveTag& tag, std::string_view name,
                         std::int64_t now) noexcept {
  const Changing changing(version_);
  sequence_.store(tag.sequence, std::memory_order_release);
  bytes_.store(tag.bytes, std::memory_order_release);
  kind_.store(tag.kind, std::memory_order_release);
  root_.store(tag.root, std::memory_order_release);
  entered_ns_.store(now, std::memory_order_release);
  left_ns_.store(0, std::memory_order_release);
  const std::size_t length = std::min(name.size(), sizeof(CollectiveRecord::name) - 1);
  // The last word ends with a 0 at least, which ends the name.
  for (std::size_t word = 0; word <= length / sizeof(Word); ++word) {
    const std::size_t begin = word * sizeof(Word);
    Word text = 0;
    if (begin + sizeof text <= length) {
      std::memcpy(&text, name.data() + begin, sizeof text);
    } else {
      std::memcpy(&text, name.data() + begin, length - begin);
    }
    name_[word].store(text, std::memory_order_release);
  }
}

void SharedRecord::leave(std::int64_t now) noexcept {
  const Changing changing(version_);
  left_ns_.store(now, std::memory_order_release);
}

std::optional<CollectiveRecord> SharedRecord::look() const noexcept {
  const std::uint64_t before = version_.load(std::memory_order_acquire);
  CollectiveRecord record;
  record.tag = {.sequence = sequence_.load(std::memory_order_acquire),
                .bytes = bytes_.load(std::memory_order_acquire),
                .kind = kind_.load(std::memory_order_acquire),
                .root = root_.load(std::memory_order_acquire)};
  record.entered_ns = entered_ns_.load(std::memory_order_acquire);
  record.left_ns = left_ns_.load(std::memory_order_acquire);
  for (std::size_t word = 0; word < kNameWords; ++word) {
    const Word text = name_[word].load(std::memory_order_acquire);
    std::memcpy(record.name.data() + word * sizeof text, &text, sizeof text);
  }
  if (before % 2 == 1 || version_.load(std::memory_order_relaxed) != before) return std::nullopt;
  return record;
}

void FlightRecorder::enter(CollectiveKind kind, std::int64_t bytes, std::string_view name,
                           int root) {
  const std::int64_t sequence = entered_.load(std::memory_order_relaxed) + 1;
  current_ = {.sequence = sequence, .bytes = bytes, .kind = kind, .root = root};
  records_[static_cast<std::size_t>(sequence - 1) % kRecords].enter(current_, name,
                                                                    coarse_now_ns());
  entered_.store(sequence, std::memory_order_release);
}

void FlightRecorder::leave() {
  const std::int64_t sequence = entered_.load(std::memory_order_relaxed);
  records_[static_cast<std::size_t>(sequence - 1) % kRecords].leave(coarse_now_ns());
  current_ = {};
}

void FlightRecorder::begin_exchange(const ExchangeRecord& what) noexcept {
  exchange_.entered_ns.store(0, std::memory_order_relaxed);
  exchange_.to.store(what.to, std::memory_order_release);
  exchange_.from.store(what.from, std::memory_order_release);
  exchange_.out_bytes.store(what.out_bytes, std::memory_order_release);
  exchange_.in_bytes.store(what.in_bytes, std::memory_order_release);
  exchange_.waiting.store(what.waiting, std::memory_order_release);
  exchange_.out.store(out_, std::memory_order_release);
  exchange_.in.store(in_, std::memory_order_release);
  exchange_.entered_ns.store(coarse_now_ns(), std::memory_order_release);
}

std::optional<ExchangeRecord> FlightRecorder::exchange() const {
  const std::int64_t entered = exchange_.entered_ns.load(std::memory_order_acquire);
  const ExchangeRecord record{exchange_.to.load(std::memory_order_acquire),
                              exchange_.from.load(std::memory_order_acquire),
                              exchange_.out_bytes.load(std::memory_order_acquire),
                              exchange_.in_bytes.load(std::memory_order_acquire),
                              entered,
                              exchange_.waiting.load(std::memory_order_acquire),
                              exchange_.out.load(std::memory_order_acquire),
                              exchange_.in.load(std::memory_order_acquire)};
  const bool changed = exchange_.entered_ns.load(std::memory_order_relaxed) != entered;
  return changed || entered == 0 ? std::nullopt : std::optional(record);
}

void FlightRecorder::set_activity(const char* what) {
  activity_.store(what, std::memory_order_relaxed);
  activity_since_ns_.store(now_ns(), std::memory_order_relaxed);
}

Activity FlightRecorder::activity() const {
  return {activity_.load(std::memory_order_relaxed),
          activity_since_ns_.load(std::memory_order_relaxed)};
}

std::optional<CollectiveRecord> FlightRecorder::latest() const {
  const std::int64_t entered = entered_.load(std::memory_order_acquire);
  if (entered == 0) return std::nullopt;
  return record(entered);
}

std::optional<CollectiveRecord> FlightRecorder::find(const CollectiveTag& tag) const {
  if (tag.sequence < 1) return std::nullopt;
  const CollectiveRecord found = record(tag.sequence);
  return found.tag == tag ? std::optional(found) : std::nullopt;
}

std::vector<CollectiveRecord> FlightRecorder::history() const {
  const std::int64_t end = entered_.load(std::memory_order_acquire);
  std::vector<CollectiveRecord> history;
  for (std::int64_t i = end - std::min<std::int64_t>(end, kRecords) + 1; i <= end; ++i) {
    history.push_back(record(i));
  }
  return history;
}

}  // namespace ringlet::comm
