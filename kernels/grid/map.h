// y[i] = f(x0[i], x1[i], ...) for every i. Narrow floats reach f, and come from it, as f32.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/elements.h"
#include "kernels/grid/pack.h"

namespace ringlet::grid {

/// y may be the memory of an input: a pack is read before it is written, and by nobody else.
template <class F, class To, class From, int kInputs>
struct Map {
  F f;
  const From* x[kInputs];
  To* y;
  static constexpr int kPack = kPackOf<To, From>;

  bool takes_packs() const {
    bool all = grid::takes_packs<kPack>(y);
    for (const From* input : x) all = all && grid::takes_packs<kPack>(input);
    return all;
  }

  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    Pack<Wide<From>, kWidth> in[kInputs];
    for (int k = 0; k < kInputs; ++k) in[k] = load_pack<kWidth>(x[k], pack);
    Pack<Wide<To>, kWidth> out{};
    for (int i = 0; i < kWidth; ++i) {
      out[i] = call(in, i, std::make_integer_sequence<int, kInputs>{});
    }
    store_pack(y, pack, out);
  }

 private:
  template <int kWidth, int... kInput>
  RINGLET_HOST_DEVICE Wide<To> call(const Pack<Wide<From>, kWidth>* in, int i,
                                    std::integer_sequence<int, kInput...>) const {
    return f(in[kInput][i]...);
  }
};

template <class F, class To, class From, class... Others>
Map<F, To, From, 1 + sizeof...(Others)> make_map(F f, To* y, const From* x,
                                                 const Others*... others) {
  return {f, {x, others...}, y};
}

template <class F>
struct Blended {
  F f;
  float beta;
  template <class... Values>
  RINGLET_HOST_DEVICE float operator()(float old_value, Values... values) const {
    return element::blend(beta, old_value, f(values...));
  }
};

/// y[i] = beta * y[i] + f(x...); with beta = 0, y is not read.
template <class Grid, class F, class T, class... Inputs>
void map_blended(Grid& grid, const char* name, std::int64_t n, float beta, T* y, F f,
                 const Inputs*... x) {
  if (beta == 0) {
    grid.for_each_pack(name, n, make_map(f, y, x...));
  } else {
    const T* old_y = y;
    grid.for_each_pack(name, n, make_map(Blended<F>{f, beta}, y, old_y, x...));
  }
}

}  // namespace ringlet::grid
