#include "kernels/memory.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"

namespace ringlet {

Buffer::Buffer(Allocator& allocator, std::int64_t bytes)
    : allocator_(&allocator), data_(allocator.allocate(bytes)), bytes_(bytes) {}

Buffer::~Buffer() {
  if (allocator_ != nullptr) allocator_->deallocate(data_, bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : allocator_(std::exchange(other.allocator_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Tensor::Tensor(Allocator& allocator, const Shape& shape, DType dtype, Layout layout)
    : buffer_(allocator, storage_count(shape, layout) * size_of(dtype)),
      view_(buffer_.data(), shape, dtype, layout) {}

namespace {

constexpr std::size_t kExpectedBlocks = 1024;

std::int64_t rounded(std::int64_t bytes) {
  return std::max<std::int64_t>(1, (bytes + Arena::kAlignment - 1) / Arena::kAlignment) *
         Arena::kAlignment;
}

}  // namespace

Arena::Arena(Device& device, std::int64_t capacity)
    : device_(device), capacity_(rounded(capacity)), buffer_(device, capacity_) {
  blocks_.reserve(kExpectedBlocks);
  reset();
}

View Arena::allocate(const Shape& shape, DType dtype, Layout layout) {
  const std::int64_t bytes = rounded(storage_count(shape, layout) * size_of(dtype));
  // The last block is taken only when no gap before it fits, however small it is: its size depends
  // on the capacity, and a dry run without limit has to give the same offsets as the real run.
  const auto last = blocks_.end() - 1;
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    const bool fits = block->free && block->bytes >= bytes;
    const bool better = best == blocks_.end() || (block != last && block->bytes < best->bytes);
    if (fits && better) best = block;
  }
  if (best == blocks_.end()) {
    throw OutOfMemoryError("the arena of device " + device_.id().to_string() + " (" +
                           std::to_string(capacity_ >> 10) + " KiB) has no room for " +
                           shape.to_string() + "; use a smaller batch");
  }
  const std::int64_t offset = best->offset;
  const std::int64_t left = best->bytes - bytes;
  *best = {offset, bytes, false};
  if (left > 0) blocks_.insert(best + 1, {offset + bytes, left, true});
  high_water_ = std::max(high_water_, offset + bytes);
  return {static_cast<std::byte*>(buffer_.data()) + offset, shape, dtype, layout};
}

void Arena::release(const ConstView& view) {
  const std::int64_t offset =
      static_cast<const std::byte*>(view.address()) - static_cast<const std::byte*>(buffer_.data());
  auto block = std::lower_bound(blocks_.begin(), blocks_.end(), offset,
                                [](const Block& b, std::int64_t o) { return b.offset < o; });
  require(block != blocks_.end() && block->offset == offset && !block->free, "Arena::release",
          "the view was not allocated here, or was released already");
  block->free = true;
  if (const auto next = block + 1; next != blocks_.end() && next->free) {
    block->bytes += next->bytes;
    blocks_.erase(next);
  }
  if (block != blocks_.begin() && (block - 1)->free) {
    (block - 1)->bytes += block->bytes;
    blocks_.erase(block);
  }
}

void Arena::reset() {
  blocks_.clear();
  blocks_.push_back({0, capacity_, true});
}

}  // namespace ringlet
