#include "comm/core/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
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

void FlightRecorder::enter(CollectiveKind kind, std::int64_t bytes, std::string_view name) {
  const std::lock_guard lock(lock_);
  CollectiveRecord& record = records_[static_cast<std::size_t>(entered_) % kRecords];
  ++entered_;
  current_ = {.sequence = entered_, .bytes = bytes, .kind = kind};
  record.tag = current_;
  const std::size_t length = std::min(name.size(), record.name.size() - 1);
  std::copy_n(name.data(), length, record.name.data());
  record.name[length] = 0;
  record.entered_ns = coarse_now_ns();
  record.left_ns = 0;
}

void FlightRecorder::leave() {
  const std::lock_guard lock(lock_);
  records_[static_cast<std::size_t>(entered_ - 1) % kRecords].left_ns = coarse_now_ns();
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
  const std::lock_guard lock(lock_);
  if (entered_ == 0) return std::nullopt;
  return records_[static_cast<std::size_t>(entered_ - 1) % kRecords];
}

std::optional<CollectiveRecord> FlightRecorder::find(const CollectiveTag& tag) const {
  const std::lock_guard lock(lock_);
  const CollectiveRecord& record = records_[static_cast<std::size_t>(tag.sequence - 1) % kRecords];
  return record.tag == tag ? std::optional(record) : std::nullopt;
}

std::vector<CollectiveRecord> FlightRecorder::history() const {
  const std::lock_guard lock(lock_);
  const auto end = static_cast<std::size_t>(entered_);
  std::vector<CollectiveRecord> history;
  for (std::size_t i = end - std::min(end, kRecords); i < end; ++i) {
    history.push_back(records_[i % kRecords]);
  }
  return history;
}

}  // namespace ringlet::comm
