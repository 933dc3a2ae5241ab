// Softmax cross-entropy over cosines, with a margin between classes: the losses that embeddings of
// faces are trained by. x are the samples' embeddings [N, D], w the classes' centres [K, D], and
//
//   c_j = x . w_j / (|x| |w_j|)
//   z_j = scale c_j                     of classes that are not the sample's
//   z_j = 0 where c_j > filter          of these; it stays in the sum as e^0
//   z_y = scale psi(c_y)                of the sample's own class
//   psi(c) = cos(m1 theta + m2) - m3, theta = arccos c
//
// Beyond theta0 = (pi - m2) / m1 this cosine rises again, and a guard (MarginGuard) takes its
// place. ArcFace is (1, m, 0), CosFace (1, 0, m), NormFace (1, 0, 0). Sources: Deng et al.,
// "ArcFace", 2019; Wang et al., "CosFace", 2018; Wang et al., "NormFace", 2017; as InsightFace
// trains them.
//
// No unit vector is stored. Products are of the rows as they are, and whoever reads them multiplies
// by 1 / |x| and 1 / |w|:
//
//   inverse_norms             1 / |row|; 0 of a row shorter than 1e-12, which has no direction.
//                             Below 0 it says that there is no such row (row_sample.h): it is no
//                             class, and what is its gradient is 0
//   margin_targets            z_y and its slope, from a cosine in double: f32 knows nothing of
//                             1 - c^2 at small angles
//   margin_softmax_part       of a block of products: m, l and t, as softmax_shards.h has them, but
//                             that m is the largest logit of the classes that are not the sample's:
//                             l is the sum of exp(z - max(m, t))
//   margin_angles             sums of angles, from the cosines of margin_targets() and from m
//   margin_softmax_gradient   products become g_nj / (|x_n| |w_j|); so g w is the gradient of x
//                             but for project_rows(), and g^T x that of w
//   project_rows              takes out of a row's gradient what would only make it longer
//   softmax_shards_right      counts samples whose own class is the nearest, and those without a
//                             direction
//
// What is between them, the merging of parts and the sum of the losses, is softmax_shards.h's.
#pragma once

#include <cstdint>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// What psi is beyond theta0, where c <= cos theta0.
enum class MarginGuard : std::uint8_t {
  none,   ///< as before: there the gradient leads away from the class
  hard,   ///< c - m2 sin m2 - m3, which jumps at theta0; of slope 1
  smooth  ///< c - 1 - cos theta0 - m3, which does not; of slope 1
};

struct MarginSpec {
  double scale = 64;
  double m1 = 1, m2 = 0, m3 = 0;
  double filter = 0;  ///< 0: none
  MarginGuard guard = MarginGuard::none;
  bool straight = false;  ///< the slope of psi is taken for 1, as under InsightFace's no_grad
  /// Epochs in which the margins grow along a line, m1 from 1 and the others from 0; 0: none.
  double warmup_epochs = 0;

  /// Without margins and filter: what an evaluation asks.
  MarginSpec plain() const { return {.scale = scale}; }
};

/// x f32 [R, D]; inverse f32 [R].
void inverse_norms(Stream& stream, ConstView x, View inverse);

/// x f32 [N, D]; w f32 [K, D], of the classes from `first` on; labels i32 [N]; epochs f32 [1]:
/// trained before this step, or absent: warm-up is over. targets f32 [N, 2]: z_y and scale dpsi/dc,
/// or -infinity and 0 where no row of w is the label's. cosines f32 [N], or absent: c_y; where no
/// row is the label's, what stands there stays.
void margin_targets(Stream& stream, const MarginSpec& spec, ConstView x, ConstView w,
                    ConstView labels, std::int64_t first, ConstView epochs, View targets,
                    View cosines = {});

/// products f32 [N, K]: x w^T. part f32 [N, 3]: m, l, t; `joins`: of these classes and of those
/// that are in it already.
void margin_softmax_part(Stream& stream, const MarginSpec& spec, ConstView products,
                         ConstView x_inverse, ConstView w_inverse, ConstView labels,
                         std::int64_t first, ConstView targets, bool joins, View part);

/// products f32 [N, K] become the gradient as above, times dloss (f32 [1]). merged f32 [N, 3]: M
/// and L, of all classes.
void margin_softmax_gradient(Stream& stream, const MarginSpec& spec, ConstView x_inverse,
                             ConstView w_inverse, ConstView labels, std::int64_t first,
                             ConstView targets, ConstView merged, ConstView dloss, View products);

/// In the place of a cosine: there is none.
inline constexpr float kNoCosine = 2;

/// Of sums (f32 [4]): [0] += angles of `cosines`, [1] += how many these are, all but kNoCosine;
/// [2] += angles to the nearest class that is not the sample's, of samples of [begin, end), and [3]
/// += how many of these there is such a class for. In radians; within 3.5e-4 of 0 and pi they may
/// be 0 and pi, as a cosine in f32 is 1 there. A class that the filter took out has a cosine of 0.
/// cosines f32 [A]; parts f32 [Q, N, 3].
void margin_angles(Stream& stream, const MarginSpec& spec, ConstView cosines, ConstView parts,
                   std::int64_t begin, std::int64_t end, View sums);

/// g less its part along x, row by row. x, g f32 [R, D]; inverse f32 [R]. Of a row without a
/// direction g becomes 0.
void project_rows(Stream& stream, ConstView x, ConstView inverse, View g);

/// right (i32 [2]) += samples of [begin, end) whose t is the largest of all logits; none whose
/// logits are broken, and none without a direction, which is as near to any class; and how many
/// have no direction. parts f32 [Q, N, 3]; merged f32 [N, 3]; x_inverse f32 [N].
void softmax_shards_right(Stream& stream, ConstView parts, ConstView merged, ConstView x_inverse,
                          std::int64_t begin, std::int64_t end, View right);

}  // namespace ringlet
