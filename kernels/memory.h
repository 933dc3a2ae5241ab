// Who owns memory: Buffer (one allocation) and Arena (many views cut from one allocation).
#pragma once

#include <cstdint>
#include <vector>

#include "base/allocator.h"
#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet {

/// One allocation, freed when the object ends; its allocator has to live longer. Movable.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Allocator& allocator, std::int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  Allocator* allocator_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// A tensor that owns its memory.
class Tensor {
 public:
  Tensor() = default;
  /// `allocator`: usually a device.
  Tensor(Allocator& allocator, const Shape& shape, DType dtype = DType::f32,
         Layout layout = Layout::nchw);
  const View& view() const { return view_; }
  operator View() const { return view_; }       // NOLINT: a tensor is used as its view
  operator ConstView() const { return view_; }  // NOLINT
  float* f32() const { return view_.f32(); }
  const Shape& shape() const { return view_.shape(); }

 private:
  Buffer buffer_;
  View view_;
};

/// Cuts views from one allocation and takes them back one by one or all at once. Best fit; free
/// neighbours are joined. The same sequence of calls gives the same offsets, so the high-water mark
/// of a dry run (on a MetaDevice) is the capacity that the real run needs. Not thread-safe: an
/// arena belongs to one replica's thread.
class Arena {
 public:
  /// Every view starts at a multiple of this many bytes.
  static constexpr std::int64_t kAlignment = 256;
  static constexpr std::int64_t kUnlimited = std::int64_t{1} << 48;

  /// `capacity` in bytes. kUnlimited is for the meta device, which has no memory.
  Arena(Device& device, std::int64_t capacity);

  Device& device() const { return device_; }
  /// Throws OutOfMemoryError when no gap is large enough. Contents are unspecified.
  View allocate(const Shape& shape, DType dtype = DType::f32, Layout layout = Layout::nchw);
  /// Gives back a view that allocate() returned (by its address).
  void release(const ConstView& view);
  /// Gives back everything.
  void reset();
  std::int64_t capacity() const { return capacity_; }
  std::int64_t high_water() const { return high_water_; }  ///< bytes, since construction

 private:
  struct Block {
    std::int64_t offset;
    std::int64_t bytes;
    bool free;
  };
  Device& device_;
  std::int64_t capacity_;
  Buffer buffer_;
  std::vector<Block> blocks_;  // ordered by offset, touching, no two free neighbours
  std::int64_t high_water_ = 0;
};

}  // namespace ringlet
