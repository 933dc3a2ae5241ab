#include "data/loader_workers.h"

#include <algorithm>
#include <optional>

namespace ringlet::data {

LoaderWorkers::LoaderWorkers(const BatchSchedule& schedule, const BatchWriter& writer,
                             BatchMemory& memory, const LoaderOptions& options)
    : schedule_(schedule),
      writer_(writer),
      memory_(memory),
      slots_(memory.count()),
      most_held_(options.held) {
  const auto samples = static_cast<std::size_t>(options.max_batch);
  constexpr auto kBlock = static_cast<std::size_t>(BatchWriter::kBlock);
  for (Slot& slot : slots_) {
    slot.staged.resize(samples * static_cast<std::size_t>(writer.pixels()));
    slot.read_in_block.resize((samples + kBlock - 1) / kBlock);
  }
  try {
    for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system starts no further one, and those that run are waited for
    stop();
    throw;
  }
}

LoaderWorkers::~LoaderWorkers() { stop(); }

void LoaderWorkers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
}

const Batch* LoaderWorkers::next() {
  std::unique_lock lock(mutex_);
  held_ = std::min(held_, most_held_ - 1);  // the oldest one may be overwritten now
  room_.notify_all();
  ready_.wait(lock, [this] { return taken_ < prepared_ || prepared_ == end_; });
  if (taken_ == prepared_) {
    if (error_) std::rethrow_exception(error_);
    return nullptr;
  }
  ++held_;
  return &memory_[taken_++];
}

std::exception_ptr LoaderWorkers::failure_within(std::int64_t batches) {
  std::unique_lock lock(mutex_);
  const std::int64_t room = std::ssize(slots_) - held_;
  const std::int64_t reach = taken_ + std::min(batches, room);
  ready_.wait(lock, [this, reach] { return prepared_ >= reach || prepared_ == end_; });
  return prepared_ < reach ? error_ : nullptr;
}

void LoaderWorkers::work() {
  while (true) {
    const Claim mine = claim();
    if (mine.k < 0) return;
    try {
      read(mine);
    } catch (...) {
      note_error(mine.k);
    }
  }
}

bool LoaderWorkers::has_room() const {
  const std::int64_t in_use = begun_ - taken_ + held_;
  return in_use < static_cast<std::int64_t>(slots_.size());
}

LoaderWorkers::Claim LoaderWorkers::claim() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // Batches are claimed one after the other, so only the last one begun has samples left.
    const std::int64_t k = begun_ - 1;
    if (k >= 0 && k < end_ && slot(k).claimed < memory_[k].n) return {k, slot(k).claimed++};
    if (begun_ >= end_) return {};
    if (has_room()) {
      if (!begin_batch()) return {};
    } else {
      room_.wait(lock);
    }
  }
  return {};
}

/// Asks the schedule for the next batch; false where there is none. With the lock held.
bool LoaderWorkers::begin_batch() {
  const std::int64_t k = begun_;
  try {
    const std::optional<BatchRequest> request = schedule_(k);
    if (!request) {
      end_ = k;
    } else {
      writer_.begin(*request, memory_[k]);
      slot(k).claimed = slot(k).done = 0;
      std::fill(slot(k).read_in_block.begin(), slot(k).read_in_block.end(), 0);
      ++begun_;
    }
  } catch (...) {
    error_ = std::current_exception();
    end_ = k;
  }
  // An empty batch is ready at once.
  while (prepared_ < begun_ && slot(prepared_).done == memory_[prepared_].n) ++prepared_;
  ready_.notify_all();
  room_.notify_all();
  return end_ > k;
}

void LoaderWorkers::read(const Claim& claim) {
  Slot& own = slot(claim.k);
  Batch& batch = memory_[claim.k];
  const auto bytes = static_cast<std::size_t>(writer_.pixels());
  writer_.read(batch, claim.row,
               std::span(own.staged).subspan(static_cast<std::size_t>(claim.row) * bytes, bytes));
  const std::int64_t samples = note_read(claim);
  if (samples == 0) return;
  const std::int64_t first = claim.row / BatchWriter::kBlock * BatchWriter::kBlock;
  writer_.lay_out(own.staged.data() + static_cast<std::size_t>(first) * bytes, first, samples,
                  batch);
  note_done(claim, samples);
}

std::int64_t LoaderWorkers::samples_of_block(std::int64_t k, std::int64_t block) {
  return std::min(BatchWriter::kBlock, memory_[k].n - block * BatchWriter::kBlock);
}

std::int64_t LoaderWorkers::note_read(const Claim& claim) {
  const std::int64_t block = claim.row / BatchWriter::kBlock;
  const std::lock_guard lock(mutex_);
  const std::int64_t read = ++slot(claim.k).read_in_block[static_cast<std::size_t>(block)];
  return read == samples_of_block(claim.k, block) ? read : 0;
}

void LoaderWorkers::note_done(const Claim& claim, std::int64_t samples) {
  const std::lock_guard lock(mutex_);
  slot(claim.k).done += samples;
  while (prepared_ < begun_ && slot(prepared_).done == memory_[prepared_].n) ++prepared_;
  ready_.notify_all();
}

void LoaderWorkers::note_error(std::int64_t k) {
  const std::lock_guard lock(mutex_);
  if (k >= end_) return;
  end_ = k;
  error_ = std::current_exception();
  ready_.notify_all();
  room_.notify_all();
}

}  // namespace ringlet::data
