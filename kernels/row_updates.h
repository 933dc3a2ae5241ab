// One step of an optimiser for some rows of a matrix, those that a step has a gradient of. What
// sgd_update() and adamw_update() do (sgd.h, adamw.h), bit for bit, is done to these rows alone:
// the others keep every bit, of their state too. So they neither decay nor lose momentum meanwhile.
#pragma once

#include "kernels/adamw.h"
#include "kernels/sgd.h"

namespace ringlet {

/// rows i32 [R]: which of the N rows, in ascending order and none twice. value and velocity f32 [N,
/// D], gradient f32 [R, D], row i of which is that of row rows[i]. rates, scale and an absent
/// velocity: as sgd_update() has them. Rows that there are not, or out of order, throw
/// ContractError on the CPU. A GPU cannot throw: it passes over those that there are not, and what
/// becomes of a row that comes twice is undefined.
void sgd_update_rows(Stream& stream, const SgdSpec& spec, ConstView rates, ConstView rows,
                     View value, ConstView gradient, View velocity, ConstView scale = {});

/// The same by AdamW. mean and square f32 [N, D]; rates as adamw_update() has them.
void adamw_update_rows(Stream& stream, const AdamWSpec& spec, ConstView rates, ConstView rows,
                       View value, ConstView gradient, View mean, View square,
                       ConstView scale = {});

}  // namespace ringlet
