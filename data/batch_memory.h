// Memory for the batches of a loader, got from its allocator at once and given back at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/data_error.h"
#include "base/error.h"
#include "base/memory_limits.h"
#include "data/batch_writer.h"
#include "data/loader.h"

namespace ringlet::data {

class BatchMemory {
 public:
  BatchMemory(Allocator& allocator, const BatchWriter& writer, std::int64_t max_batch,
              std::size_t count)
      : allocator_(allocator) {
    auto floats = static_cast<std::uint64_t>(writer.image_floats(max_batch));
    for (const Field& field : writer.fields()) {
      floats += static_cast<std::uint64_t>(field.numbers() * max_batch);
    }
    const std::uint64_t bytes_of_one = sizeof(float) * floats + sizeof(Batch);
    if (count > usable_memory() / bytes_of_one) throw_no_memory(count, max_batch);
    batches_.resize(count);
    owned_.reserve((2 + writer.fields().size()) * count);
    try {
      for (Batch& batch : batches_) {
        batch.images = allocate<float>(writer.image_floats(max_batch));
        batch.targets = allocate<std::int32_t>(max_batch);
        for (std::size_t i = 0; i < writer.fields().size(); ++i) {
          batch.fields[i] = allocate<float>(writer.fields()[i].numbers() * max_batch);
        }
      }
    } catch (const OutOfMemoryError&) {
      release();
      throw_no_memory(count, max_batch);
    } catch (...) {
      release();
      throw;
    }
  }
  ~BatchMemory() { release(); }
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  std::size_t count() const { return batches_.size(); }
  /// They are used in turn: that of the k-th request.
  Batch& operator[](std::int64_t k) { return batches_[static_cast<std::size_t>(k) % count()]; }

 private:
  [[noreturn]] static void throw_no_memory(std::size_t count, std::int64_t max_batch) {
    throw DataError("loader: there is no memory for " + std::to_string(count) + " batches of " +
                    std::to_string(max_batch) + " samples; use fewer or smaller ones");
  }

  template <class T>
  T* allocate(std::int64_t elements) {
    const std::int64_t bytes = elements * std::int64_t{sizeof(T)};
    owned_.push_back({allocator_.allocate(bytes), bytes});
    return static_cast<T*>(owned_.back().address);
  }
  void release() {
    for (const Owned& memory : owned_) allocator_.deallocate(memory.address, memory.bytes);
  }

  struct Owned {
    void* address;
    std::int64_t bytes;
  };

  Allocator& allocator_;
  std::vector<Batch> batches_;
  std::vector<Owned> owned_;
};

}  // namespace ringlet::data
