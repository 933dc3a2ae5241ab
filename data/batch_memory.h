// Memory for the batches of a loader, got from its allocator at once and given back at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "data/batch_writer.h"
#include "data/error.h"
#include "data/loader.h"
#include "data/memory.h"

namespace ringlet::data {

class BatchMemory {
 public:
  BatchMemory(const Allocator& allocator, const BatchWriter& writer, std::int64_t max_batch,
              std::size_t count)
      : allocator_(allocator) {
    const auto floats = static_cast<std::uint64_t>(writer.image_floats(max_batch));
    const std::uint64_t bytes_of_one = sizeof(float) * floats + sizeof(Batch);
    if (count > usable_memory() / bytes_of_one) throw_no_memory(count, max_batch);
    batches_.resize(count);
    owned_.reserve(2 * count);
    try {
      for (Batch& batch : batches_) {
        batch.images = allocate<float>(writer.image_floats(max_batch));
        batch.labels = allocate<std::int32_t>(max_batch);
      }
    } catch (const std::bad_alloc&) {
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
    constexpr std::int64_t kMost =
        std::numeric_limits<std::int64_t>::max() / std::int64_t{sizeof(T)};
    if (elements > kMost) throw std::bad_alloc();
    void* memory = allocator_.allocate(static_cast<std::size_t>(elements) * sizeof(T));
    owned_.push_back(memory);
    return static_cast<T*>(memory);
  }
  void release() {
    for (void* memory : owned_) allocator_.release(memory);
  }

  Allocator allocator_;
  std::vector<Batch> batches_;
  std::vector<void*> owned_;
};

}  // namespace ringlet::data
