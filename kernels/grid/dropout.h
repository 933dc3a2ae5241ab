// The kernels of kernels/dropout.h, for nchw and nhwc. A block of random words is for four
// neighbouring features of a sample. A thread has those, or a pack of such groups.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/philox.h"
#include "kernels/dropout.h"
#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// out = beta * out + in * mask. kWidth is the width of packs where a sample's features are whole
/// packs. Else it is 1, and the last group of a sample may be smaller.
template <class T, int kWidth>
struct Dropout {
  static constexpr int kGroup = 4;
  static constexpr int kFeatures = std::max(kWidth, kGroup);  // that a thread has
  float probability = 0;
  float kept_factor = 0;
  std::uint64_t key = 0;
  std::int64_t first_sample = 0;
  const BatchPosition* position = nullptr;  // null where first_sample says it all
  Divisor threads;                          // of a sample
  std::int64_t features = 0;
  const T* in = nullptr;
  float beta = 0;
  T* out = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t n = threads.quotient(i), first = (i - n * threads.divisor()) * kFeatures;
    const std::int64_t sample =
        first_sample + n + (position == nullptr ? 0 : sample_number(*position));
    std::uint32_t words[kFeatures];
    for (int k = 0; k < kFeatures; k += kGroup) {
      const PhiloxBlock block = philox(key, static_cast<std::uint64_t>((first + k) / kGroup),
                                       static_cast<std::uint64_t>(sample));
      for (std::size_t w = 0; w < block.size(); ++w)
        words[static_cast<std::size_t>(k) + w] = block[w];
    }
    const std::int64_t at = n * features + first;
    for (int k = 0; k < kFeatures && first + k < features; k += kWidth) apply(at + k, words + k);
  }

 private:
  RINGLET_HOST_DEVICE void apply(std::int64_t at, const std::uint32_t* words) const {
    auto values = load_pack<kWidth>(in + at, 0);
    Pack<float, kWidth> old{};
    if (beta != 0) old = load_pack<kWidth>(static_cast<const T*>(out) + at, 0);
    for (int k = 0; k < kWidth; ++k) {
      const float factor = element::dropout_factor(uniform01(words[k]), probability, kept_factor);
      values[k] = element::blend(beta, old[k], values[k] * factor);
    }
    store_pack(out + at, 0, values);
  }
};

/// In nhwc the features that share random words lie a channel apart: each thread has one.
template <class T>
struct DropoutNhwc {
  float probability = 0;
  float kept_factor = 0;
  std::uint64_t key = 0;
  std::int64_t first_sample = 0;
  const BatchPosition* position = nullptr;
  Divisor features;  // of a sample
  Divisor channels;
  const T* in = nullptr;
  float beta = 0;
  T* out = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t n = features.quotient(i), at = i - n * features.divisor();
    const std::int64_t pixel = channels.quotient(at), channel = at - pixel * channels.divisor();
    const std::int64_t pixels = channels.quotient(features.divisor());
    const std::int64_t feature = channel * pixels + pixel;
    const std::int64_t sample =
        first_sample + n + (position == nullptr ? 0 : sample_number(*position));
    const PhiloxBlock words =
        philox(key, static_cast<std::uint64_t>(feature / 4), static_cast<std::uint64_t>(sample));
    std::uint32_t word = words[0];  // an index that is known only here would ask for memory
    for (std::size_t k = 1; k < 4; ++k) {
      if (feature % 4 == static_cast<std::int64_t>(k)) word = words[k];
    }
    const float factor = element::dropout_factor(uniform01(word), probability, kept_factor);
    const float old = beta == 0 ? 0.0F : load(out[i]);
    store(out[i], element::blend(beta, old, load(in[i]) * factor));
  }
};

template <class T, class Grid>
void launch_dropout_nhwc(Grid& grid, const char* name, const DropoutSpec& spec, const ConstView& in,
                         float beta, const View& out) {
  grid.for_each(name, in.count(),
                DropoutNhwc<T>{spec.probability, 1.0F / (1.0F - spec.probability), spec.key,
                               spec.first_sample,
                               spec.position.absent() ? nullptr : position_of(spec.position),
                               Divisor(in.shape().count_per_sample()), Divisor(in.shape()[1]),
                               in.as<T>(), beta, out.as<T>()});
}

template <class T, int kWidth, class Grid>
void launch_dropout(Grid& grid, const char* name, const DropoutSpec& spec, const ConstView& in,
                    float beta, const View& out) {
  constexpr std::int64_t kFeatures = Dropout<T, kWidth>::kFeatures;
  const std::int64_t features = in.shape().count_per_sample();
  const std::int64_t threads = (features + kFeatures - 1) / kFeatures;
  grid.for_each(name, in.shape()[0] * threads,
                Dropout<T, kWidth>{spec.probability, 1.0F / (1.0F - spec.probability), spec.key,
                                   spec.first_sample,
                                   spec.position.absent() ? nullptr : position_of(spec.position),
                                   Divisor(threads), features, in.as<T>(), beta, out.as<T>()});
}

template <class Grid>
void run_dropout(Grid&& grid, const char* name, const DropoutSpec& spec, const ConstView& in,
                 float beta, const View& out) {
  if (in.count() == 0) return;
  reduction::visit_activations(in.dtype(), [&]<class T>(T) {
    constexpr int kPack = kPackOf<T>;
    if (in.layout() == Layout::nhwc) {
      launch_dropout_nhwc<T>(grid, name, spec, in, beta, out);
    } else if (in.shape().count_per_sample() % kPack == 0 &&
               takes_packs<kPack>(in.as<T>(), out.as<T>())) {
      launch_dropout<T, kPack>(grid, name, spec, in, beta, out);
    } else {
      launch_dropout<T, 1>(grid, name, spec, in, beta, out);
    }
  });
}

/// Floor: reads 4 N bytes, writes 4 N.
template <class Grid>
void dropout_forward(Grid&& grid, const DropoutSpec& spec, const ConstView& x, const View& y) {
  run_dropout(grid, "dropout_forward", spec, x, 0, y);
}

/// Floor: reads 4 N bytes, 8 N with a beta, writes 4 N.
template <class Grid>
void dropout_backward(Grid&& grid, const DropoutSpec& spec, const ConstView& dy, float beta,
                      const View& dx) {
  run_dropout(grid, "dropout_backward", spec, dy, beta, dx);
}

}  // namespace ringlet::grid
