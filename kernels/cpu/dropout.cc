#include "kernels/dropout.h"

#include <algorithm>

#include "base/philox.h"
#include "kernels/cpu/loops.h"
#include "kernels/elements.h"

namespace ringlet::impl {

namespace {

/// out = beta * out + in * mask, one sample in nchw or sixteen in lanes at a time.
class Dropout {
 public:
  Dropout(const DropoutSpec& spec, const ConstView& in, float beta, const View& out)
      : probability_(spec.probability),
        key_(spec.key),
        first_sample_(spec.first_sample +
                      (spec.position.absent() ? 0 : sample_number(*position_of(spec.position)))),
        kept_factor_(1.0F / (1.0F - spec.probability)),
        samples_(in.shape()[0]),
        features_(in.shape().count_per_sample()),
        in_(in.f32()),
        beta_(beta),
        out_(out.f32()) {}

  void sample(std::int64_t n) const {
    for (std::int64_t f = 0; f < features_; f += 4) {
      const PhiloxBlock words = random(n, f);
      for (std::int64_t i = f; i < std::min(f + 4, features_); ++i) {
        apply(n * features_ + i, words[static_cast<std::size_t>(i - f)]);
      }
    }
  }

  void lane_block(std::int64_t block) const {
    const std::int64_t first = block * kLanes;
    const std::int64_t used = std::min(kLanes, samples_ - first);
    for (std::int64_t f = 0; f < features_; f += 4) {
      const std::int64_t words = std::min<std::int64_t>(4, features_ - f);
      const std::int64_t offset = first * features_ + f * kLanes;
      for (std::int64_t lane = 0; lane < used; ++lane) {
        const PhiloxBlock block_words = random(first + lane, f);
        for (std::int64_t i = 0; i < words; ++i) {
          apply(offset + i * kLanes + lane, block_words[static_cast<std::size_t>(i)]);
        }
      }
      for (std::int64_t lane = used; lane < kLanes; ++lane) {
        for (std::int64_t i = 0; i < words; ++i) out_[offset + i * kLanes + lane] = 0;
      }
    }
  }

 private:
  PhiloxBlock random(std::int64_t n, std::int64_t f) const {
    return philox(key_, static_cast<std::uint64_t>(f / 4),
                  static_cast<std::uint64_t>(first_sample_ + n));
  }

  void apply(std::int64_t i, std::uint32_t word) const {
    const float factor = element::dropout_factor(uniform01(word), probability_, kept_factor_);
    out_[i] = element::blend(beta_, out_[i], in_[i] * factor);
  }

  float probability_;
  std::uint64_t key_;
  std::int64_t first_sample_;
  float kept_factor_;
  std::int64_t samples_;
  std::int64_t features_;
  const float* in_;
  float beta_;
  float* out_;
};

void run(CpuStream& stream, const DropoutSpec& spec, const ConstView& in, float beta,
         const View& out) {
  const Dropout dropout(spec, in, beta, out);
  const std::int64_t samples = in.shape()[0];
  if (in_lanes(in)) {
    for_each_item(stream, lane_blocks(samples), [&](std::int64_t b) { dropout.lane_block(b); });
  } else {
    for_each_item(stream, samples, [&](std::int64_t n) { dropout.sample(n); });
  }
}

}  // namespace

void dropout_forward(CpuStream& stream, const DropoutSpec& spec, const ConstView& x,
                     const View& y) {
  run(stream, spec, x, 0, y);
}

void dropout_backward(CpuStream& stream, const DropoutSpec& spec, const ConstView& dy, float beta,
                      const View& dx) {
  run(stream, spec, dy, beta, dx);
}

}  // namespace ringlet::impl
