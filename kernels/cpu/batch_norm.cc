// The CPU's implementation of kernels/batch_norm.h. A channel is one thread's work: its sums run
// over samples (blocks in lanes) in one order, so no bit depends on the number of threads. Where a
// channel is passed over twice, the second pass finds it in the cache.
#include "kernels/batch_norm.h"

#include <cmath>

#include "kernels/cpu/loops.h"
#include "kernels/cpu/norm/table.h"
#include "kernels/grid/batch_norm.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

namespace {

template <class T>
const T* numbers(const ConstView& view) {
  return view.absent() ? nullptr : static_cast<const T*>(view.data());
}
template <class T>
T* numbers(const View& view) {
  return view.absent() ? nullptr : static_cast<T*>(view.data());
}

/// Where the planes of a tensor lie: of a sample and channel, or of a block and channel.
class Planes {
 public:
  explicit Planes(const ConstView& x)
      : channels_(x.shape()[1]),
        samples_(x.shape()[0]),
        lanes_(in_lanes(x) ? static_cast<int>(kLanes) : 1),
        numbers_(x.shape().rank() == 4 ? x.shape()[2] * x.shape()[3] * lanes_ : lanes_) {}

  std::int64_t channels() const { return channels_; }
  double values() const {
    return static_cast<double>(samples_) * static_cast<double>(numbers_ / lanes_);
  }
  /// Calls f(plane, offset) for each plane of the channel, in order.
  template <class T, class F>
  void for_channel(std::int64_t channel, const T* x, F f) const {
    for (std::int64_t n = 0; n < samples_; n += lanes_) {
      const std::int64_t offset = (n / lanes_ * channels_ + channel) * numbers_;
      const std::int64_t left = samples_ - n;
      const bool whole = lanes_ == 1 || left >= lanes_;
      f(NormPlane<T>{numbers_, whole ? 16 : static_cast<int>(left), x + offset}, offset);
    }
  }

 private:
  std::int64_t channels_, samples_;
  int lanes_;
  std::int64_t numbers_;
};

/// One channel's work: `loops` over its `planes`.
template <class T>
struct ChannelWork {
  const NormLoops<T>& loops;
  const Planes& planes;
  std::int64_t channel;
};

/// Calls run(work) for each channel of x: ChannelWork<T>, of numbers T.
template <class Run>
void for_each_channel(CpuStream& stream, const ConstView& x, const Run& run) {
  const Planes planes(x);
  const auto with = [&]<class T>(const NormLoops<T>& loops) {
    for_each_item(stream, planes.channels(), [&](std::int64_t c) {
      run(ChannelWork<T>{loops, planes, c});
    });
  };
  const NormTable table =
      for_instruction_set(stream.isa(), [](auto set) { return norm_table_of(set); });
  if (x.dtype() == DType::bf16) return with(table.bf16);
  with(table.f32);
}

/// What a channel is normalised with, from the views of a BatchNorm.
struct NormChannels {
  explicit NormChannels(const BatchNorm& norm)
      : mean(norm.statistics.f32()),
        squares(mean + norm.x.shape()[1]),
        weight(norm.weight.absent() ? nullptr : norm.weight.f32()),
        bias(norm.bias.absent() ? nullptr : norm.bias.f32()),
        epsilon(static_cast<double>(norm.epsilon)),
        count(norm.count),
        relu(norm.activation == Activation::relu) {}

  /// 1 / the deviation
  double factor(std::int64_t c) const {
    return 1 / std::sqrt(static_cast<double>(squares[c]) / count + epsilon);
  }
  ChannelNorm channel(std::int64_t c) const {
    const double gain = (weight == nullptr ? 1.0 : static_cast<double>(weight[c])) * factor(c);
    return {mean[c], static_cast<float>(gain), bias == nullptr ? 0.0F : bias[c], relu};
  }
  /// From sums (Σ dz, Σ dz h), or null.
  ChannelGradient gradient(std::int64_t c, const float* sums, std::int64_t channels,
                           float beta) const {
    const ChannelNorm norm = channel(c);
    if (sums == nullptr) return {norm.gain, 0, 0, beta};
    const double through = static_cast<double>(norm.gain) / count;
    return {norm.gain, static_cast<float>(-through * static_cast<double>(sums[c])),
            static_cast<float>(-through * static_cast<double>(sums[channels + c]) * factor(c)),
            beta};
  }

  const float* mean;
  const float* squares;
  const float* weight;
  const float* bias;
  double epsilon, count;
  bool relu;
};

template <class T>
void find_moments(const ChannelWork<T>& work, const T* x, float* moments) {
  RunningMoments all{};
  work.planes.for_channel(work.channel, x, [&](const NormPlane<T>& plane, std::int64_t) {
    work.loops.moments(plane, all);
  });
  moments[work.channel] = static_cast<float>(all.mean);
  moments[work.planes.channels() + work.channel] = static_cast<float>(all.squares);
}

template <class T>
void normalise(const ChannelWork<T>& work, const BatchNorm& norm, const ConstView& residual_view,
               const View& y_view) {
  const ChannelNorm channel = NormChannels(norm).channel(work.channel);
  const T* residual = numbers<T>(residual_view);
  T* y = numbers<T>(y_view);
  work.planes.for_channel(
      work.channel, numbers<T>(norm.x), [&](const NormPlane<T>& plane, std::int64_t at) {
        work.loops.forward(plane, channel, residual == nullptr ? nullptr : residual + at, y + at);
      });
}

/// The tensors of a backward pass; null where absent.
template <class T>
struct BackwardTensors {
  const T* x;
  const T* y;
  const T* dy;
  T* dz;
  float* sums;
};

template <class T>
void find_sums(const ChannelWork<T>& work, const BackwardTensors<T>& t, const NormChannels& norm) {
  const std::int64_t c = work.channel;
  const ChannelNorm of_channel = norm.channel(c);
  ChannelSums total{};
  work.planes.for_channel(c, t.x, [&](const NormPlane<T>& plane, std::int64_t at) {
    work.loops.sums(plane, of_channel, t.y == nullptr ? nullptr : t.y + at, t.dy + at,
                    t.dz == nullptr ? nullptr : t.dz + at, total);
  });
  t.sums[c] = static_cast<float>(total.dz);
  t.sums[work.planes.channels() + c] = static_cast<float>(total.dz_deviation * norm.factor(c));
}

/// From dy, of which `relu` says whether it still has to pass the ReLU.
template <class T>
void find_data(const ChannelWork<T>& work, const T* x, const NormChannels& norm, bool relu,
               const T* dy, const float* sums, float beta, T* dx) {
  ChannelNorm of_channel = norm.channel(work.channel);
  of_channel.relu = relu;
  const ChannelGradient gradient = norm.gradient(work.channel, sums, work.planes.channels(), beta);
  work.planes.for_channel(work.channel, x, [&](const NormPlane<T>& plane, std::int64_t at) {
    work.loops.data(plane, of_channel, gradient, dy + at, dx + at);
  });
}

template <class T>
BackwardTensors<T> tensors_of(const BatchNorm& norm, const ConstView& y, const ConstView& dy,
                              const View& dz, const View& sums) {
  return {numbers<T>(norm.x), numbers<T>(y), numbers<T>(dy), numbers<T>(dz), sums.f32()};
}

}  // namespace

void batch_norm_moments(CpuStream& stream, const ConstView& x, const View& moments) {
  for_each_channel(stream, x, [&]<class T>(const ChannelWork<T>& work) {
    find_moments(work, numbers<T>(x), moments.f32());
  });
}

void batch_norm_forward(CpuStream& stream, const BatchNorm& norm, const ConstView& residual,
                        const View& y) {
  for_each_channel(stream, norm.x, [&](const auto& work) { normalise(work, norm, residual, y); });
}

void batch_norm_train_forward(CpuStream& stream, const BatchNorm& norm, const View& moments,
                              const ConstView& residual, const View& y) {
  for_each_channel(stream, norm.x, [&]<class T>(const ChannelWork<T>& work) {
    find_moments(work, numbers<T>(norm.x), moments.f32());
    normalise(work, norm, residual, y);
  });
}

void batch_norm_backward_sums(CpuStream& stream, const BatchNorm& norm, const ConstView& y,
                              const ConstView& dy, const View& dz, const View& sums) {
  for_each_channel(stream, norm.x, [&]<class T>(const ChannelWork<T>& work) {
    find_sums(work, tensors_of<T>(norm, y, dy, dz, sums), NormChannels(norm));
  });
}

void batch_norm_backward_data(CpuStream& stream, const BatchNorm& norm, const ConstView& dy,
                              const ConstView& sums, float beta, const View& dx) {
  const NormChannels channels(norm);
  for_each_channel(stream, norm.x, [&]<class T>(const ChannelWork<T>& work) {
    find_data(work, numbers<T>(norm.x), channels, channels.relu, numbers<T>(dy),
              numbers<float>(sums), beta, numbers<T>(dx));
  });
}

void batch_norm_backward(CpuStream& stream, const BatchNorm& norm, const ConstView& y,
                         const ConstView& dy, const View& dz, const View& sums, float beta,
                         const View& dx) {
  const NormChannels channels(norm);
  for_each_channel(stream, norm.x, [&]<class T>(const ChannelWork<T>& work) {
    const BackwardTensors<T> t = tensors_of<T>(norm, y, dy, dz, sums);
    const bool rectified = t.dz != nullptr;
    find_sums(work, t, channels);
    find_data(work, t.x, channels, channels.relu && !rectified, rectified ? t.dz : t.dy, t.sums,
              beta, numbers<T>(dx));
  });
}

void batch_norm_merge(CpuStream&, const ConstView& parts, std::int64_t pixels,
                      const View& moments) {
  const grid::NormMerge merge = grid::norm_merge(parts, pixels, moments);
  for (std::int64_t c = 0; c < merge.channels; ++c) merge(c);
}

}  // namespace ringlet::impl
