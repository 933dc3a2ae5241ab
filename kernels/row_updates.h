// One step of an optimiser for some rows of a matrix, those that a step has a gradient of. What
// sgd_update() and adamw_update() do (sgd.h, adamw.h), bit for bit, is done to these rows alone:
// the others keep every bit, of their state too. So they neither decay nor lose momentum meanwhile.
#pragma once

#include "kernels/adamw.h"
#include "kernels/sgd.h"

namespace ringlet {

/// rows i32 [R]: which of the N rows, in ascending order and none twice; -1 anywhere between is
/// none. value and velocity f32 [N, D], gradient f32 [R, D], row i of which is that of row rows[i].
/// rates, scale and an absent velocity: as sgd_update() has them. Rows that there are not, or out
/// of order, throw ContractError on the CPU. A GPU cannot throw: it passes over those that there
/// are not, and what becomes of a row that comes twice is undefined.
void sgd_update_rows(Stream& stream, const SgdSpec& spec, ConstView rates, ConstView rows,
                     View value, ConstView gradient, View velocity, ConstView scale = {});

/// The same by AdamW. mean and square f32 [N, D]; rates as adamw_update() has them, but for the
/// last two, which are those of each row where `corrections` (f32 [R, 2]) are given.
void adamw_update_rows(Stream& stream, const AdamWSpec& spec, ConstView rates, ConstView rows,
                       View value, ConstView gradient, View mean, View square, ConstView scale = {},
                       ConstView corrections = {});

/// Averages that start at 0 are corrected by how often they were updated, which rows that are
/// updated now and then do not have in common. counts (f32 [N]) of the rows that are listed grow by
/// one, unless `scale` is 0; corrections f32 [R, 2]: lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t)
/// of a row's count t. lr f32 [1]; of `rates`, as above, the first counts. 0 of a row that is none.
void adamw_count_rows(Stream& stream, const AdamWSpec& spec, ConstView lr, ConstView rates,
                      ConstView rows, View counts, View corrections, ConstView scale = {});

}  // namespace ringlet
