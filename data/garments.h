// The ten garments of the generated images, in the order of Fashion-MNIST's classes.
#pragma once

#include "data/images/canvas.h"
#include "data/random.h"

namespace ringlet::data {

/// Paints one garment of class `label` (0 .. 9), with proportions taken from `random`, in tones
/// around 1 (the caller scales them).
void draw_garment(Canvas& canvas, int label, Random& random);

}  // namespace ringlet::data
