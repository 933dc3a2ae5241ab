#include "train/loop/evaluator.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "train/batches/label_batches.h"

namespace ringlet::train {

namespace {

/// The k-th pass of this rank, over and over: evaluation follows evaluation, all in one order.
data::BatchSchedule schedule_of(int rank, int ranks, std::int64_t passes, std::int64_t batch,
                                std::int64_t samples) {
  const std::int64_t mine = (passes - rank + ranks - 1) / ranks;
  return [=](std::int64_t k) -> std::optional<data::BatchRequest> {
    if (mine <= 0) return {};
    const std::int64_t begin = (rank + k % mine * ranks) * batch;
    return data::BatchRequest{0, begin, std::min(begin + batch, samples)};
  };
}

data::LoaderOptions for_passes(data::LoaderOptions options, std::int64_t batch,
                               comm::Communicator& communicator) {
  options.max_batch = batch;
  options.augment = {};
  options.on_read = communicator.note_of_work();
  return options;
}

/// What ranks tell each other behind the sums.
enum Flag : std::size_t { kWishes = 0, kCut = 1, kFailures = 2, kFlags = 3 };

/// Counts travel as f32 in two parts, count % kHalf and count / kHalf: no sum of either, over as
/// many ranks as there may be, is beyond what f32 holds exactly.
constexpr std::int32_t kHalf = 1 << 16;
std::int64_t parts_of(DType metric) { return metric == DType::i32 ? 2 : 1; }

std::int64_t passes_of(std::int64_t samples, std::int64_t batch) {
  return (samples + batch - 1) / batch;
}

}  // namespace

Evaluator::Evaluator(Replica& replica, comm::Communicator& communicator,
                     std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions loader,
                     std::int64_t batch, DataAxis* axis)
    : Evaluator(replica, ranks_of(communicator), std::move(dataset), std::move(loader), batch, axis,
                nullptr) {}

Evaluator::Evaluator(Replica& replica, const Ranks& ranks,
                     std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions loader,
                     std::int64_t batch, DataAxis* axis, StageLink* link)
    : replica_(replica),
      ranks_(ranks),
      communicator_(ranks.replicas),
      link_(link),
      dataset_(std::move(dataset)),
      batch_(std::min(batch, dataset_->size())),
      passes_(passes_of(dataset_->size(), batch_)),
      metric_(replica.task().metric()),
      losses_(replica.device(), {passes_}),
      numbers_(replica.device(), {metric_.numbers * (metric_.dtype == DType::i32 ? 1 : passes_)},
               metric_.dtype),
      sums_(replica.device(),
            {passes_ + numbers_.shape().count() * parts_of(metric_.dtype) + std::int64_t{kFlags}}),
      ready_(replica.device().make_event()),
      batches_(make_stage_batches(replica.device(), replica.reads_samples(), ranks.is_last(),
                                  dataset_,
                                  schedule_of(communicator_.rank(), communicator_.size(), passes_,
                                              batch_, dataset_->size()),
                                  {.loader = for_passes(std::move(loader), batch_, communicator_),
                                   .shuffle = dataset_->photographs()})),
      axis_(axis),
      samples_by_rank_(axis != nullptr ? static_cast<std::size_t>(communicator_.size()) : 0) {}

std::int64_t Evaluator::size_of_pass(std::int64_t pass) const {
  return std::max<std::int64_t>(0, std::min(batch_, dataset_->size() - pass * batch_));
}

std::vector<std::int64_t> Evaluator::pass_sizes() const {
  std::set<std::int64_t> sizes;
  for (std::int64_t i = communicator_.rank(); i < passes_; i += communicator_.size()) {
    sizes.insert(size_of_pass(i));
  }
  if (axis_ != nullptr) {  // those of all ranks, and of a stand-in
    for (std::int64_t i = 0; i < passes_; ++i) sizes.insert(size_of_pass(i));
    sizes.insert(1);
  }
  return {sizes.begin(), sizes.end()};
}

/// The last number of a round of passes, one of each rank, in which all take part: of rows that are
/// cut each has some.
std::int64_t Evaluator::end_of_rounds() const {
  const std::int64_t ranks = communicator_.size();
  return axis_ != nullptr ? (passes_ + ranks - 1) / ranks * ranks : passes_;
}

/// Says what all ranks have in the round of this rank's pass `pass`.
void Evaluator::begin_round(std::int64_t pass) {
  if (axis_ == nullptr) return;
  const std::int64_t first = pass - communicator_.rank();
  for (std::size_t r = 0; r < samples_by_rank_.size(); ++r) {
    samples_by_rank_[r] = size_of_pass(first + static_cast<std::int64_t>(r));
  }
  axis_->begin(samples_by_rank_, batch_);
}

void Evaluator::make_passes(const StopRequest& stop, Tested& mine, bool& whole) {
  const std::int64_t end = end_of_rounds();
  for (std::int64_t i = communicator_.rank(); i < end; i += communicator_.size()) {
    communicator_.note_work();
    begin_round(i);
    whole = whole && !(stop && stop());
    const data::Batch* batch = nullptr;
    try {
      if (i < passes_ && whole && !mine.failure) batch = batches_->next();
    } catch (...) {
      mine.failure = std::current_exception();
    }
    if (batch != nullptr) {
      replica_.evaluate(*batch, losses_.view().slice(i, i + 1), numbers_of(i));
    } else if (axis_ != nullptr) {
      replica_.evaluate_nothing();  // others need this rank's rows
    } else {
      return;
    }
  }
}

/// The next batch of a chain of stages; null where the first stage, which alone decides, has none.
const data::Batch* Evaluator::next_of_chain(const StopRequest& stop, Tested& mine, bool& whole) {
  if (ranks_.stage() > 0) return link_->pass_on(0) == 0 ? nullptr : batches_->next();
  const data::Batch* batch = nullptr;
  try {
    whole = !(stop && stop());
    if (whole) batch = batches_->next();
  } catch (...) {
    mine.failure = std::current_exception();
  }
  (void)link_->pass_on(batch != nullptr ? 1 : 0);
  return batch;
}

void Evaluator::make_passes_of_stage(const StopRequest& stop, Tested& mine, bool& whole) {
  const std::int64_t end = end_of_rounds();
  bool goes_on = true;
  for (std::int64_t i = communicator_.rank(); i < end; i += communicator_.size()) {
    communicator_.note_work();
    begin_round(i);
    const data::Batch* const batch =
        goes_on && i < passes_ ? next_of_chain(stop, mine, whole) : nullptr;
    goes_on = batch != nullptr;
    if (!goes_on && axis_ == nullptr) return;
    if (!goes_on) {
      replica_.evaluate_nothing();  // others need this rank's rows
      continue;
    }
    link_->receive(batch->n);
    if (ranks_.is_last()) {
      replica_.evaluate(*batch, losses_.view().slice(i, i + 1), numbers_of(i));
    } else {
      replica_.evaluate_and_hand_on(*batch);
    }
    link_->send();
  }
}

/// Where a pass adds what it measures.
View Evaluator::numbers_of(std::int64_t pass) const {
  if (metric_.dtype == DType::i32) return numbers_;
  return numbers_.view().slice(pass * metric_.numbers, (pass + 1) * metric_.numbers);
}

Tested Evaluator::run(const StopRequest& stop) {
  Device& device = replica_.device();
  Stream& compute = device.compute();
  fill(compute, 0, losses_);
  fill(compute, 0, numbers_);
  Tested mine;
  bool whole = true;
  if (link_ != nullptr) {
    make_passes_of_stage(stop, mine, whole);
  } else {
    make_passes(stop, mine, whole);
  }
  std::vector<float> sums(static_cast<std::size_t>(sums_.shape().count()));
  copy_to_host(compute, losses_, sums.data());
  if (metric_.dtype == DType::i32) {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(numbers_.shape().count()));
    copy_to_host(compute, numbers_, counts.data());
    auto part = sums.begin() + passes_;
    for (const std::int32_t count : counts) {
      const std::int32_t low = count % kHalf, high = count / kHalf;
      *part++ = static_cast<float>(low);
      *part++ = static_cast<float>(high);
    }
  } else {
    copy_to_host(compute, numbers_, sums.data() + passes_);
  }
  float* const flags = sums.data() + sums.size() - kFlags;
  flags[kCut] = whole ? 0.0F : 1.0F;
  flags[kWishes] = !whole || (stop && stop()) ? 1.0F : 0.0F;
  flags[kFailures] = mine.failure ? 1.0F : 0.0F;
  copy_from_host(compute, sums.data(), sums_);
  ranks_.world.meet_before_kernels(device.communication(), sums_.view().bytes(),
                                   "evaluation's passes");
  compute.record(*ready_);
  device.communication().wait(*ready_);
  ranks_.world.all_reduce(device.communication(), sums_, "evaluation");
  device.communication().synchronize();
  ranks_.world.require_alive();
  copy_to_host(compute, sums_, sums.data());
  return outcome_of(sums, std::move(mine));
}

Tested Evaluator::outcome_of(const std::vector<float>& sums, Tested mine) const {
  const float* const flags = sums.data() + sums.size() - kFlags;
  mine.stop_wished = flags[kWishes] > 0;
  mine.failed = flags[kFailures] > 0;
  if (!mine.failed && flags[kCut] == 0) mine.result = summarize(sums);
  return mine;
}

Evaluation Evaluator::summarize(const std::vector<float>& sums) const {
  double loss = 0;
  for (std::int64_t i = 0; i < passes_; ++i) loss += sums[static_cast<std::size_t>(i)];
  std::vector<double> numbers(static_cast<std::size_t>(metric_.numbers));
  const std::int64_t parts = parts_of(metric_.dtype);
  for (std::int64_t i = 0; i < numbers_.shape().count() * parts; ++i) {
    const double weight = i % parts == 0 ? 1 : kHalf;
    numbers[static_cast<std::size_t>(i / parts % metric_.numbers)] +=
        weight * static_cast<double>(sums[static_cast<std::size_t>(passes_ + i)]);
  }
  return replica_.task().evaluation(loss, dataset_->size(), numbers);
}

}  // namespace ringlet::train
