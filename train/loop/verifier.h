// Verifier: measures the model of a run on pairs of pictures, shared by the ranks.
//
// What train/verify.h says of a model's file, of the model that is being trained: in inference
// mode, so that nothing of it changes, in the memory of the run's evaluation, on batches that
// threads decode ahead. How the pairs are shared: train/verification/pairs_share.h.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/stop_request.h"
#include "comm/communicator.h"
#include "train/batches/batch_source.h"
#include "train/loop/replica.h"
#include "train/setup/run_setup.h"
#include "train/verification/pairs_share.h"

namespace ringlet::train {

/// How a verification went. But for `failure` equal on all ranks.
struct VerificationOutcome {
  std::vector<Verified> sets{};  ///< empty where pairs are missing
  bool stop_wished = false;      ///< somebody asked to stop, before its end or just now
  bool failed = false;           ///< a picture could not be read, or what it gives is not finite
  std::exception_ptr failure{};  ///< of this rank, if it was this one's
};

class Verifier {
 public:
  /// All of `setup.verification`. Throws ContractError for a model whose answer no rank has whole.
  Verifier(Replica& replica, comm::Communicator& communicator, const RunSetup& setup);

  /// Samples of this rank's passes, each number once.
  std::vector<std::int64_t> pass_sizes() const;

  /// Runs this rank's passes over all sets; every rank gets the whole result. `step`: after which,
  /// for messages. A rank on which `stop` says so between two passes, or that fails, makes no
  /// further one. All ranks learn of it together, and such a verifier is spent. Collective.
  VerificationOutcome run(std::int64_t step, const StopRequest& stop);

 private:
  struct Part {
    std::string name;
    PairsShare share;
    std::unique_ptr<BatchSource> batches;  // null: this rank has none
  };

  void make_passes(Part& part, const std::string& model, const StopRequest& stop,
                   VerificationOutcome& mine, bool& whole);

  Replica& replica_;
  comm::Communicator& communicator_;
  std::int64_t samples_of_pass_;
  std::vector<Part> parts_;
};

}  // namespace ringlet::train
