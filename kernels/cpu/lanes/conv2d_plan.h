// How a convolution is cut into the vector kernels' tiles: taps, packed weights, padded images.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/kernel_table.h"

namespace ringlet::lanes {

/// [0, total) in the fewest parts of at most `largest`, as equal as can be.
struct Split {
  Split(std::int64_t total_items, std::int64_t largest)
      : total(total_items), parts((total_items + largest - 1) / largest) {}
  std::int64_t begin(std::int64_t part) const { return total * part / parts; }
  int size(std::int64_t part) const { return static_cast<int>(begin(part + 1) - begin(part)); }

  std::int64_t total;
  std::int64_t parts;
};

/// The batch's vectors of samples, `per_group` at a time (the last group may be smaller).
struct SampleGroups {
  SampleGroups(const KernelTable& kernels, std::int64_t samples, int per_group);
  int vectors(std::int64_t group) const;
  /// Floats from the tensor's start to the group's first vector, for blocks of `block` floats.
  std::int64_t offset(std::int64_t group, std::int64_t block) const;
  /// Floats from one vector of a group to the next.
  std::int64_t stride(std::int64_t block) const { return width == kLanes ? block : width; }

  std::int64_t width;  ///< samples in a vector
  std::int64_t total;  ///< vectors
  std::int64_t per_group;
  std::int64_t count;  ///< groups
};

/// Hands out pieces of a stream's workspace, each aligned to 64 bytes.
class Scratch {
 public:
  template <class T>
  static std::int64_t bytes(std::int64_t count) {
    return (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
  }
  Scratch(CpuStream& stream, std::int64_t total_bytes)
      : next_(static_cast<std::byte*>(stream.workspace(total_bytes))) {}
  template <class T>
  T* take(std::int64_t count) {
    T* piece = reinterpret_cast<T*>(next_);
    next_ += bytes<T>(count);
    return piece;
  }

 private:
  std::byte* next_;
};

/// Extents along one axis of a convolution.
struct Axis {
  std::int64_t in, out, kernel, stride, padding, dilation;
};
Axis row_axis(const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y);
Axis col_axis(const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y);

/// Room for the taps of `positions` outputs.
std::int64_t tap_list_bytes(std::int64_t positions, std::int64_t kernel);
/// Taps of the output's positions: input position i * stride - padding + p * dilation, where it
/// exists. `pitch` floats lie between neighbouring positions, tap p has the weight p * weight_step.
TapList forward_taps(Scratch& scratch, const Axis& axis, std::int64_t pitch,
                     std::int64_t weight_step);
/// Taps of the input's positions, for the data gradient: the output positions that read them.
TapList backward_taps(Scratch& scratch, const Axis& axis, std::int64_t pitch,
                      std::int64_t weight_step);

/// Weights seen as [outputs][inputs][kernel] with any strides.
struct WeightView {
  const float* w;
  std::int64_t output_stride;
  std::int64_t input_stride;
  std::int64_t inputs;
  std::int64_t kernel;  ///< KH * KW, contiguous
};

/// The same for every group of channels; "outputs" are what is computed, which for the data
/// gradient are the convolution's input channels.
struct GroupedWeights {
  WeightView first;  ///< of group 0
  std::int64_t groups;
  std::int64_t outputs;  ///< of one group
  std::int64_t group_stride;
  std::int64_t count() const { return groups * outputs * first.inputs * first.kernel; }
};
GroupedWeights forward_weights(const Conv2dSpec& spec, const ConstView& w);
GroupedWeights backward_weights(const Conv2dSpec& spec, const ConstView& w);

/// For each group and each tile of outputs: packed [inputs][kernel][outputs of the tile].
void pack_tiles(CpuStream& stream, const GroupedWeights& weights, const Split& tiles,
                float* packed);

/// padded [planes][H + 2 ph][W + 2 pw][16] = x [planes][H][W][16] with zeros around.
void pad_planes(CpuStream& stream, const float* x, std::int64_t planes, const Axis& rows,
                const Axis& cols, float* padded);
inline std::int64_t padded_extent(const Axis& axis) { return axis.in + 2 * axis.padding; }

}  // namespace ringlet::lanes
