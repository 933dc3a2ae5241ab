// GradientSquares: the norm of a step's summed gradient, the same bits however the model is cut.
//
//   a parameter           its sum of squares, a double
//   one cut by rows       a double for each part of the rows, in their order: ranks tell each other
//   a stage of the model  its parameters in the model's order, and its doubles behind those of the
//                         stage before
//
// All of these are added one after the other, so they are added in the model's order, whichever
// stage has a parameter, and in whatever order the plan has them. No sum is rounded to f32 but the
// norm. The loss's own parameters count 0: the norm is only broken where they are.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "kernels/device.h"
#include "kernels/l2_norm.h"
#include "nn/parameters.h"
#include "train/sync/meeting.h"

namespace ringlet::train {

class GradientSquares {
 public:
  /// All outlive it. `replicas`: of this stage. `stages`: of this replica; null: there is one, else
  /// collective over these.
  GradientSquares(Device& device, comm::Communicator& replicas, comm::Communicator* stages,
                  const nn::Parameters& parameters);

  /// norm (f32 [1]) and `limit` as l2_norm() has them, of the gradients of the whole model. The
  /// same bits on every rank. Collective where rows are cut or there are several stages, unless
  /// `rehearses`.
  void measure(const View& norm, const NormLimit& limit, bool rehearses = false);

  /// What this stage brought to the last norm: doubles, as bytes.
  ConstView of_stage() const;

 private:
  static constexpr std::int64_t kShort = 1 << 20;
  /// Where the sums of a parameter stand.
  struct Sum {
    const nn::PlannedParameter* planned = nullptr;
    std::int64_t first = 0;
    bool is_cut() const { return planned->placement == nn::Placement::rows; }
    /// Whether it is one of those that are made by one launch: of the model, and short. Each of
    /// them takes as many blocks as the longest.
    bool is_short() const {
      return !is_cut() && !planned->of_loss && planned->gradient_end() - planned->begin <= kShort;
    }
  };

  void make_ranges();
  void square(const Sum& sum, int index, const View& to);
  void square_rows(const Sum& sum, bool rehearses);

  Device& device_;
  comm::Communicator& replicas_;
  const nn::Parameters& parameters_;
  nn::AxisPosition position_;
  std::vector<Sum> sums_;   // in the order of registration
  std::int64_t count_ = 0;  // doubles of this stage
  std::int64_t most_ = 0;   // of any stage
  comm::Communicator* stages_;
  Meeting of_replicas_, of_stages_;
  Tensor ranges_;             // SquareRange of each short one
  std::int64_t longest_ = 0;  // of these
  Tensor part_;               // doubles: of a parameter's rows that this rank has
  Tensor mine_;               // [most]
  Tensor all_;                // [stages, most]; behind a stage's own there are zeros
};

}  // namespace ringlet::train
