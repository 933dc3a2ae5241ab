// Convolutions of bf16 in lanes, by the instructions that some processors have for products of
// bf16: AMX's tiles, or AVX512_BF16. Products are exact, sums are f32 (in the instructions' own
// order and rounding; numbers below 2^-126 count as 0), rounded once when they are stored.
//
// Sixteen samples are a row of a tile, so a tile of weights times a tile of what a position sees
// gives sixteen channels of the position. What it sees lies side by side once pairs of channels
// stand innermost (Interleave): [row][column][pair of channels][16 samples][2]. So a row of a
// window, with all its channels, is one run of memory, and nothing is copied for each position.
// With i for a position:
//
//   forward          y[o, i] = w[o, run] * x[run, i]      a run for each row of the window
//   data gradient    dx[c, i] = w[run, c] * dy[run, i]    with strides: a product a kind
//                                                         of positions (positions.h)
//   filter gradient  dw[o, c] = sum over pairs of samples and all i of dy[o, pair] * x[pair, c],
//                    for each tap, x turned (Turn) so that sixteen channels are a row
//
// Sums run in an order that shapes alone decide, so no bit depends on the number of threads.
#pragma once

#include "kernels/activation.h"
#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"

namespace ringlet::lanes::bf16 {

struct Table;  // table.h

/// The loops for `products`; null for none.
const Table* table_for(Bf16Products products);

/// Whether weights w [O, C, KH, KW] have enough channels for the instructions, without groups.
bool suits(const Shape& w);

/// Whether `stream`'s processor has the instructions, and they suit.
/// x and w as in conv2d_forward; w's type does not matter.
bool suits(const CpuStream& stream, const Conv2dSpec& spec, const ConstView& x, const ConstView& w);
/// The same for the filter gradient.
bool suits_filter(const CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                  const ConstView& dw);

// As in kernels/conv2d.h. x, y, w and their gradients are bf16; bias and dw are f32.
void conv2d_forward(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& bias, Activation activation,
                    const View& y);
void conv2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, const ConstView& w,
                          const ConstView& dy, float beta, const View& dx);
void conv2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw);

}  // namespace ringlet::lanes::bf16
