#include "train/loop/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "train/loop/as_rows.h"

namespace ringlet::train {

namespace {

/// What ranks tell each other behind the slots of the pairs.
enum Sign : std::size_t { kWishesToStop = 0, kCutShort = 1, kBroken = 2, kSigns = 3 };

/// The k-th pass over `samples`, over and over: verification follows verification.
data::BatchSchedule over_and_over(std::int64_t samples, std::int64_t batch) {
  const std::int64_t passes = (samples + batch - 1) / batch;
  return [=](std::int64_t k) -> std::optional<data::BatchRequest> {
    const std::int64_t begin = k % passes * batch;
    return data::BatchRequest{0, begin, std::min(begin + batch, samples)};
  };
}

void require_whole_answers(const nn::Parameters& parameters) {
  for (const nn::PlannedParameter& p : parameters.plan().parameters) {
    const bool is_cut = p.placement == nn::Placement::rows && !p.of_loss;
    require(!is_cut, "--verify",
            "needs the whole answer of a model on each rank, and the rows of this one are cut over "
            "the ranks; leave it out");
  }
}

}  // namespace

Verifier::Verifier(Replica& replica, comm::Communicator& communicator, const RunSetup& setup)
    : replica_(replica),
      communicator_(communicator),
      samples_of_pass_(setup.verification_pass.samples) {
  if (setup.verification.empty()) return;
  require_whole_answers(replica.parameters());
  data::LoaderOptions loader = setup.loader;
  loader.augment = {};
  loader.on_read = communicator.note_of_work();
  const ModelInfo& model = setup.model;
  for (const VerificationSet& set : setup.verification) {
    Part part{set.name,
              PairsShare(set.pairs,
                         {static_cast<int>(setup.data.train->channels()),
                          static_cast<int>(setup.data.train->height()),
                          static_cast<int>(setup.data.train->width()), model.exif},
                         Flip::sum, setup.verification_pass.pairs, communicator.rank(),
                         communicator.size()),
              nullptr};
    if (const auto images = part.share.images()) {
      loader.max_batch = std::min(samples_of_pass_, images->size());
      part.batches = make_batch_source(replica.device(), images,
                                       over_and_over(images->size(), samples_of_pass_),
                                       {.loader = loader, .shuffle = false});
    }
    parts_.push_back(std::move(part));
  }
}

std::vector<std::int64_t> Verifier::pass_sizes() const {
  std::set<std::int64_t> sizes;
  for (const Part& part : parts_) {
    if (part.share.images() == nullptr) continue;
    const std::int64_t samples = part.share.images()->size();
    if (samples >= samples_of_pass_) sizes.insert(samples_of_pass_);
    sizes.insert(samples % samples_of_pass_);
  }
  sizes.erase(0);
  return {sizes.begin(), sizes.end()};
}

void Verifier::make_passes(Part& part, const std::string& model, const StopRequest& stop,
                           VerificationOutcome& mine, bool& whole) {
  part.share.begin();
  while (part.share.taken() < part.share.size()) {
    whole = whole && !(stop && stop());
    if (!whole) return;
    try {
      const data::Batch& batch = *part.batches->next();
      const ConstView answer = replica_.answer(batch);
      const std::vector<float> rows = as_rows(replica_.device().compute(), answer);
      part.share.take(rows, std::ssize(rows) / batch.n, model);
    } catch (...) {
      mine.failure = std::current_exception();
      return;
    }
    communicator_.note_work();
  }
}

VerificationOutcome Verifier::run(std::int64_t step, const StopRequest& stop) {
  VerificationOutcome mine;
  const std::string model = fmt::format("the model after step {}", step);
  for (Part& part : parts_) {
    bool whole = true;
    make_passes(part, model, stop, mine, whole);
    std::vector<float>& slots = part.share.slots();
    const std::size_t pairs = slots.size();
    slots.resize(pairs + kSigns);
    slots[pairs + kWishesToStop] = !whole || (stop && stop()) ? 1.0F : 0.0F;
    slots[pairs + kCutShort] = whole ? 0.0F : 1.0F;
    slots[pairs + kBroken] = mine.failure ? 1.0F : 0.0F;
    sum_over_ranks(replica_.device(), communicator_, slots);
    mine.stop_wished = mine.stop_wished || slots[pairs + kWishesToStop] > 0;
    mine.failed = slots[pairs + kBroken] > 0;
    if (mine.failed || slots[pairs + kCutShort] > 0) {
      mine.sets.clear();
      break;
    }
    mine.sets.push_back(part.share.verified(part.name));
  }
  return mine;
}

}  // namespace ringlet::train
