// Fully connected layer.   y[n,o] = act( b[o] + sum over i of w[o,i] * x[n,i] )
//
// x, y, dy and dx are activations (kernels/tensor.h) in one layout, nchw ([N][I]) or lanes
// ([N/16][I][16]). w [O, I] is row-major, of their type; dw, row-major too, and the bias are f32.
// Products of narrow factors are added up in f32, with the bias, before y is rounded.
#pragma once

#include <string>

#include "kernels/activation.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// x [N, I], w [O, I], bias [O] or absent, y [N, O].
void linear_forward(Stream& stream, ConstView x, ConstView w, ConstView bias, Activation activation,
                    View y);
/// dx = beta * dx + dy w.          dy [N, O], dx [N, I].
void linear_backward_data(Stream& stream, ConstView w, ConstView dy, float beta, View dx);
/// dw = beta * dw + dy^T x.        dw [O, I].
void linear_backward_weight(Stream& stream, ConstView x, ConstView dy, float beta, View dw);
/// The same, and db = beta_db * db + sum over n of dy, as bias_backward() (bias.h) has it. db [O].
/// A product reads all of dy anyway: a GPU's library may sum it on the way.
void linear_backward_weight_bias(Stream& stream, ConstView x, ConstView dy, float beta_dw, View dw,
                                 float beta_db, View db);

/// The kernels that OpenBLAS took for this processor, or that OPENBLAS_CORETYPE names: "SkylakeX".
/// Others add in another order, so products have other last bits.
std::string product_kernels();

/// "serial" or "OpenMP" where the system's loader found a build of OpenBLAS other than the one for
/// POSIX threads, which this was built for; else empty. The serial one of some systems loses
/// products that several replicas compute at the same time.
std::string other_build_of_openblas();

}  // namespace ringlet
