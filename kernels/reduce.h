// Reduction: several arrays become one, element by element. Collectives add with it.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/reduce_op.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// The most arrays that one call reads or writes.
inline constexpr int kMaxReduced = 64;

/// How results are stored. Hints, of which GPUs need none.
///   cached      as usual
///   streaming   past the caches; pays where the line lies in another core's cache or is not read
///               again soon
///   across      all but the first result by whole lines that need not be read before; pays where
///               another core has read them
enum class Stores : std::uint8_t { cached, streaming, across };

struct ReduceOptions {
  int divisor = 1;  ///< with ReduceOp::mean: what the sum is divided by
  Stores stores = Stores::cached;
};

/// Every one of `ys` = op(xs[0], xs[1], ...), taken from left to right. f32, f16, bf16 or i32, all
/// of the same kind, 1 to kMaxReduced of each. Narrow floats are reduced in f32 and rounded once.
/// i32 wraps around, and its mean is rounded towards zero. A NaN gives a NaN, in min and max as
/// well. Any of `ys` may be any of `xs`; otherwise nothing overlaps.
void reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options = {});

/// Arrays in the memory of the host, of `count` elements each.
struct HostArrays {
  std::span<const void* const> xs;
  std::span<void* const> ys;
  DType dtype;
  std::int64_t count;
};

/// reduce() of `arrays.xs` to `arrays.ys` on a processor, where making views of them would take as
/// long as reducing them.
void reduce_arrays(Stream& stream, ReduceOp op, const HostArrays& arrays,
                   const ReduceOptions& options = {});

/// y = op(y, x), as reduce() of the two: short, for what arrives in a short message.
void reduce_into(Stream& stream, ReduceOp op, const ConstView& x, const View& y);

}  // namespace ringlet
