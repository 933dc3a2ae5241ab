// The kernel of kernels/gather_batch.h, for nchw and nhwc. Each block gathers one sample. Each of
// its threads walks the permutation: a warp does that in the time that one thread needs, and no
// other warp waits for it.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/gather_batch.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"

namespace ringlet::grid {

/// kWidth is kPack where images are whole packs, and 1 where they are not. In nhwc, y's channels
/// lie side by side, those of the data set a plane apart.
template <int kWidth, bool kNhwc>
struct GatherBatch {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 1;
  struct Shared {};

  GatherSpec spec;
  std::int64_t pixels = 0;
  Divisor channels;
  const std::uint8_t* images = nullptr;
  const std::int32_t* labels = nullptr;
  const BatchPosition* position = nullptr;
  float* y = nullptr;
  std::int32_t* batch_labels = nullptr;

  RINGLET_HOST_DEVICE void phase(int, const ThreadIndex& index, Shared&) const {
    const std::int64_t sample = sample_at(position->first + index.block);
    if (index.thread == 0) batch_labels[index.block] = sample < 0 ? -1 : labels[sample];
    copy_image(index, sample);
  }

 private:
  /// -1 beyond the data set, where the walk would not end.
  RINGLET_HOST_DEVICE std::int64_t sample_at(std::int64_t at) const {
    if (at < 0 || at >= spec.sampler.size()) return -1;
    return spec.sampler.index(position->epoch, at);
  }

  /// Where the data set has what y has at `pack`.
  RINGLET_HOST_DEVICE std::int64_t source_of(std::int64_t pack) const {
    if constexpr (kNhwc) {
      const std::int64_t pixel = channels.quotient(pack);
      const std::int64_t channel = pack - pixel * channels.divisor();
      return channel * channels.quotient(pixels) + pixel;
    } else {
      return pack;
    }
  }

  RINGLET_HOST_DEVICE void copy_image(const ThreadIndex& index, std::int64_t sample) const {
    for (std::int64_t pack = index.thread; pack < pixels / kWidth; pack += kThreads) {
      Pack<float, kWidth> out{};
      if (sample < 0) {
        for (int i = 0; i < kWidth; ++i) out[i] = std::numeric_limits<float>::quiet_NaN();
      } else {
        const auto in = load_pack<kWidth>(images + sample * pixels, source_of(pack));
        for (int i = 0; i < kWidth; ++i) out[i] = spec.scale(in[i]);
      }
      store_pack(y + index.block * pixels, pack, out);
    }
  }
};

template <int kWidth, bool kNhwc, class Grid>
void launch_gather(Grid& grid, const GatherSpec& spec, const ConstView& images,
                   const ConstView& labels, const ConstView& position, const View& y,
                   const View& batch_labels) {
  grid.run_blocks(
      "gather_batch", y.shape()[0],
      GatherBatch<kWidth, kNhwc>{spec, y.shape().count_per_sample(),
                                 Divisor(std::max<std::int64_t>(1, y.shape()[1])),
                                 images.as<std::uint8_t>(), labels.as<std::int32_t>(),
                                 position_of(position), y.f32(), batch_labels.as<std::int32_t>()});
}

/// Floor: reads a byte a pixel, writes 4.
template <class Grid>
void gather_batch(Grid&& grid, const GatherSpec& spec, const ConstView& images,
                  const ConstView& labels, const ConstView& position, const View& y,
                  const View& batch_labels) {
  const bool whole_packs = y.shape().count_per_sample() % kPack == 0 &&
                           takes_packs<kPack>(images.as<std::uint8_t>(), y.f32());
  const bool apart = y.layout() == Layout::nhwc && !is_alike_in_nhwc(y.shape());
  const auto launch = apart         ? launch_gather<1, true, Grid>
                      : whole_packs ? launch_gather<kPack, false, Grid>
                                    : launch_gather<1, false, Grid>;
  launch(grid, spec, images, labels, position, y, batch_labels);
}

}  // namespace ringlet::grid
