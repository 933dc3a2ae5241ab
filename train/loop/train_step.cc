#include "train/loop/train_step.h"

#include <algorithm>

#include "base/stopwatch.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/loss_scale.h"
#include "train/loop/broadcast_model.h"
#include "train/reports/failure.h"

namespace ringlet::train {

namespace {

/// Indices of the statistics behind the gradients: sums over the ranks, then what a rank computes
/// of the summed gradient for itself.
enum Statistic : std::int64_t {
  kLossSum = 0,
  kSamples = 1,
  kStopWishes = 2,
  kGradNorm = 3,
  kSkipsInRow = 4,
  kLossScale = 5,
  kToldSums = 6  // the first of kTold, sums as well
};

View statistic(const nn::Parameters& parameters, Statistic which, int arena = 0) {
  return parameters.statistics(arena).slice(which, which + 1);
}

/// Of this rank, where the model has rows to be cut.
nn::AxisPosition position_of(const comm::Communicator& communicator, const ReplicaSpec& spec,
                             const TrainStepOptions& options) {
  return {.rank = communicator.rank(),
          .ranks = communicator.size(),
          .shards = spec.recipe.exact ? options.shards * communicator.size() : 0,
          .accumulate = static_cast<int>(spec.recipe.accumulate)};
}

/// While it lives, an idle stream's work leaves no spans.
class Untraced {
 public:
  explicit Untraced(Stream& stream) : stream_(stream), tracer_(stream.tracer()) {
    stream.set_tracer(nullptr);
  }
  ~Untraced() { stream_.set_tracer(tracer_); }
  Untraced(const Untraced&) = delete;
  Untraced& operator=(const Untraced&) = delete;

 private:
  Stream& stream_;
  Tracer* tracer_;
};

}  // namespace

TrainStep::TrainStep(Device& device, const Ranks& ranks, const ReplicaSpec& spec,
                     const TrainStepOptions& options)
    : device_(device),
      communicator_(ranks.replicas),
      replica_(device, spec, &communicator_.allocator(device),
               position_of(communicator_, spec, options)),
      optimizer_(
          make_optimizer(device, replica_.parameters(), spec.recipe, options.make_optimizer)),
      tree_(options.shards),
      sync_(device, communicator_, replica_.parameters(), tree_, options.sync),
      loss_scale_(spec.recipe.precision == Precision::f16 ? std::make_unique<LossScale>(device)
                                                          : nullptr),
      inputs_(device, scales_loss() ? options.in_flight + 1 : 0),
      squares_(device, communicator_, ranks.stages, replica_.parameters()),
      sums_(device, nn::Parameters::kStatistics * size_of(DType::f32), options.in_flight + 1),
      clip_norm_(spec.recipe.clip_norm),
      lr_(spec.recipe.lr),
      head_lr_(spec.recipe.head_lr),
      // That of sharded rows, and of stages, takes all ranks, and only rank 0 knows who wants it.
      grad_norm_(options.grad_norm || sync_.narrows() || clips() || scales_loss() ||
                 ranks.are_cut() || !replica_.parameters().registry().along.alone()) {
  rates_.reserve(static_cast<std::size_t>(options.in_flight) + 1);
  open_.resize(static_cast<std::size_t>(replica_.passes()));
  if (replica_.passes() > 1) {
    rooms_ = Tensor(device, {replica_.passes() * replica_.parameters().sums().count()});
  }
  replica_.read_epochs(inputs_.epochs());
  require(!clips() || optimizer_->scales_gradient(), "--clip-norm",
          "this optimiser does not clip; it should multiply the gradient by its scale "
          "(Optimizer::scales_gradient)");
  require(
      !scales_loss() || (optimizer_->scales_gradient() && optimizer_->skips_steps()),
      "--precision f16",
      "this optimiser does not skip steps; where the scale of the gradient is 0 it should change "
      "nothing (Optimizer::skips_steps)");
  require(replica_.plan().head == 0 || optimizer_->has_head_rate(), "--head-lr",
          "this optimiser has one rate for all; it should take each part's "
          "(Optimizer::has_head_rate)");
  const nn::AxisPosition& along = replica_.parameters().registry().along;
  if (!along.alone()) {
    axis_ = std::make_unique<DataAxis>(device, communicator_, along);
    rows_ = std::make_unique<ShardedRows>(device, communicator_, replica_.parameters());
    replica_.share_rows(axis_.get());
    most_samples_ = spec.max_train_batch;
    most_evaluated_ = spec.max_eval_batch;
  }
  if (const nn::Parameter* sampled = sampled_of(replica_.parameters())) {
    require(optimizer_->updates_rows(), "--sample-rate",
            "this optimiser updates all rows of the centres; it should update those that are "
            "listed (Optimizer::updates_rows)");
    sampler_ = std::make_unique<nn::RowSampler>(*sampled->sampling, sampled->shape[0], along);
    listed_ =
        std::make_unique<Uploader>(device, std::max<std::int64_t>(1, sampled->listed.bytes()));
  }
  if (ranks.are_cut()) {
    stages_ = std::make_unique<StageSums>(device, *ranks.stages,
                                          std::int64_t{nn::Parameters::kStatistics});
  }
  if (!options.world_statistics || communicator_.size() == 1) return;
  world_ =
      std::make_unique<WorldStatistics>(device, communicator_, replica_.parameters().registry());
  replica_.share_statistics(world_.get());
}

TrainStep::~TrainStep() {
  drain(device_.communication());
  drain(device_.compute());
}

void TrainStep::rehearse(const Rehearsal& work) {
  Stream& compute = device_.compute();
  const Untraced compute_untraced(compute), communication_untraced(device_.communication());
  replica_.share_statistics(nullptr);  // no collective yet
  for (const std::int64_t samples : work.training) {
    for (const bool accumulate : {false, true}) {
      if (accumulate && !work.accumulates) continue;
      if (axis_) axis_->begin_rehearsal(samples, most_samples_);
      replica_.rehearse_training(samples, work.position, accumulate);
    }
  }
  for (const std::int64_t samples : work.evaluation) {
    if (axis_) axis_->begin_rehearsal(samples, most_evaluated_);
    replica_.rehearse_evaluation(samples);
  }
  for (const std::int64_t samples : work.answers) replica_.rehearse_answer(samples);
  const nn::Parameters& parameters = replica_.parameters();
  if (scales_loss()) begin_loss_scale();
  measure_gradient(true);
  fill(compute, 0, parameters.gradients());
  rehearse_update();
  if (scales_loss()) set_loss_scale({});
  sync_.rehearse();
  if (!world_) return;
  world_->rehearse();
  replica_.share_statistics(world_.get());
}

void TrainStep::rehearse_together(const Rehearsal& work) {
  if (communicator_.size() == 1 || device_.compute().in_order_with_host()) return;
  communicator_.set_activity("rehearsing");
  rehearse(work);
  communicator_.barrier(device_.communication(), "rehearsal");
}

/// With a gradient and rates of 0, and with the optimiser's state put back behind it.
void TrainStep::rehearse_update() {
  Stream& compute = device_.compute();
  const StepRates none = optimizer_->rates_of({});
  const Tensor rates(device_, {std::ssize(none)});
  copy_from_host(compute, none.data(), rates);
  std::vector<Tensor> kept;
  for (const StateArena& arena : optimizer_->state()) {
    kept.emplace_back(device_, arena.numbers.shape());
    copy(compute, arena.numbers, kept.back());
  }
  apply(rates, {});  // running statistics are those of layers that did not run
  for (std::size_t i = 0; i < kept.size(); ++i) {
    copy(compute, kept[i], optimizer_->state()[i].numbers);
  }
  compute.synchronize();
}

void TrainStep::begin_with_one_of(std::span<const Rates> rates, std::int64_t world_samples,
                                  std::int64_t own_samples, bool stop_wished, double world_weight) {
  world_samples_ = world_samples;
  rates_.clear();
  for (const Rates& row : rates) {
    const double head_lr = lr_ > 0 ? row.lr * (head_lr_ / lr_) : head_lr_;
    rates_.push_back(optimizer_->rates_with_head(row, head_lr));
    rates_.back()[kLossGradientScale] = 1;
    rates_.back()[kEpochs] = static_cast<float>(row.epochs);
    if (const WeightAverage* average = optimizer_->average()) {
      rates_.back()[kAverageShare] = static_cast<float>(average->share_of(row.step));
    }
  }
  const double divisor = world_weight > 0 ? world_weight : static_cast<double>(world_samples);
  inputs_.upload(rates_, skips_, divisor, own_samples, stop_wished);
  if (scales_loss()) begin_loss_scale();
}

void TrainStep::list_rows(std::int64_t step, std::span<const std::int32_t> labels) {
  const auto listed = sampler_->list(step, labels);
  if (!listed.empty()) {
    listed_->upload(device_.compute(), listed.data(), sampled_of(replica_.parameters())->listed);
  }
}

void TrainStep::begin_loss_scale() {
  loss_scale_begin(device_.compute(), loss_scale_->state(), inputs_.newest(), inputs_.table(),
                   inputs_.loss_seed(), inputs_.rates());
}

void TrainStep::set_loss_scale(const LossScaleState& state) {
  loss_scale_->upload(state);
  skips_ = state.skips;
}

void TrainStep::add(const data::Batch& batch, const MicroBatch& micro, ConstView position) {
  forward(batch, micro, position);
  backward();
}

/// Where statistics of a shard, and updates of running ones behind them, are added.
View TrainStep::sums_of(int shard) {
  if (open_.size() == 1) return replica_.parameters().sums(ShardTree::arena_of(shard));
  const std::int64_t room = shard % std::ssize(open_), size = rooms_.shape()[0] / std::ssize(open_);
  return rooms_.view().slice(room * size, (room + 1) * size);
}

/// Half a pass follows.
void TrainStep::begin_pass(const MicroBatch& micro, std::int64_t samples) {
  communicator_.set_activity(activity_);
  if (world_) world_->begin(micro.world_samples, samples);
  if (!axis_) return;
  axis_->begin(micro.samples_by_rank, most_samples_, micro.pass);
  replica_.parameters().use_pass(micro.shard);
}

void TrainStep::forward(const data::Batch& batch, const MicroBatch& micro, ConstView position,
                        int pass) {
  Stream& compute = device_.compute();
  nn::Parameters& parameters = replica_.parameters();
  const View sums = sums_of(micro.shard);
  const View statistics = sums.slice(0, nn::Parameters::kStatistics);
  const View updates = sums.slice(nn::Parameters::kStatistics, sums.count());
  Open& open = open_.at(static_cast<std::size_t>(pass));
  require(!open.is_open, "TrainStep::forward", "the backward of this pass comes before it");
  open = {micro, batch.n, open_.size() > 1};
  begin_pass(micro, batch.n);
  if (micro.first_of_shard) {
    if (open_.size() == 1) parameters.use_gradient_arena(ShardTree::arena_of(micro.shard));
    if (micro.last) {
      copy(compute, inputs_.statistics(), statistics);
    } else {
      fill(compute, 0, statistics);
    }
    if (updates.count() > 0) fill(compute, 0, updates);
    share_ = {0, 0, 0};
  }
  if (open_.size() > 1) parameters.track_in(updates);
  count_share(batch.n);
  {
    const PhaseTimer timer(phases_.forward);
    replica_.forward(batch, position, share_, statistics.slice(kLossSum, kLossSum + 1),
                     statistics.slice(kToldSums, kToldSums + kTold), pass);
  }
  if (micro.last && !micro.first_of_shard) {
    copy(compute, inputs_.counts(), statistics.slice(kSamples, kStopWishes + 1));
  }
}

void TrainStep::backward(int pass) {
  Stream& compute = device_.compute();
  nn::Parameters& parameters = replica_.parameters();
  Open& open = open_.at(static_cast<std::size_t>(pass));
  const MicroBatch micro = open.micro;
  if (open_.size() > 1) {  // forwards of others came between
    require(open.is_open, "TrainStep::backward", "the forward of this pass comes before it");
    open.is_open = false;
    const int arena = ShardTree::arena_of(micro.shard);
    begin_pass(micro, open.samples);
    parameters.use_gradient_arena(arena);
    if (micro.last_of_shard) copy(compute, sums_of(micro.shard), parameters.sums(arena));
  }
  if (micro.last) sync_.begin_step();
  {
    const PhaseTimer timer(phases_.backward);
    const double waited = sync_.waited_seconds();
    replica_.backward(inputs_.loss_seed(),
                      {.accumulate = !micro.first_of_shard, .last = micro.last}, &sync_, pass);
    phases_.sync += sync_.waited_seconds() - waited;
    phases_.backward -= sync_.waited_seconds() - waited;
  }
  if (micro.last_of_shard && !micro.last) tree_.merge(compute, parameters, micro.shard);
}

void TrainStep::count_share(std::int64_t samples) {
  if (samples == 0) return;  // no batch norm runs
  share_.share = static_cast<double>(samples) / static_cast<double>(world_samples_);
  share_.so_far += share_.share;
  ++share_.batches;
}

void TrainStep::finish_gradients() {
  const double waited = sync_.waited_seconds();
  {
    const ScopedSpan span(device_.compute().tracer(), "wait for gradients", "phase");
    communicator_.set_activity("waiting for gradients");
    sync_.finish();
  }
  phases_.sync += sync_.waited_seconds() - waited;
  if (axis_)
    ShardTree::add_rows(device_.compute(), replica_.parameters(), axis_->position().shards);
  measure_gradient();
}

NormLimit TrainStep::norm_limit() const {
  if (!clips() || scales_loss()) return {};
  return {static_cast<float>(clip_norm_), inputs_.gradient_scale()};
}

/// Every rank has the same sums, and so the same norm and scale, without a collective. Where rows
/// are cut, each tells the squares of its own, and so does each stage.
void TrainStep::measure_gradient(bool rehearses) {
  if (!grad_norm_) return;
  const nn::Parameters& parameters = replica_.parameters();
  const View norm = statistic(parameters, kGradNorm);
  const NormLimit limit = norm_limit();
  if (stages_ && !rehearses) stages_->add(parameters.statistics());
  squares_.measure(norm, limit, rehearses);
  if (!scales_loss()) return;
  loss_scale_end(device_.compute(), {.most = static_cast<float>(clip_norm_)}, norm,
                 loss_scale_->state(), inputs_.gradient_scales(),
                 parameters.statistics().slice(kSkipsInRow, kLossScale + 1));
}

void TrainStep::update() {
  const PhaseTimer timer(phases_.update, device_.compute().tracer(), "update");
  apply(inputs_.rates(), scales_loss() ? ConstView(inputs_.gradient_scale()) : ConstView());
}

/// `scale`: 0 where the step is skipped; absent where none is.
void TrainStep::apply(const ConstView& rates, const ConstView& scale) {
  optimizer_->step(rates);
  replica_.parameters().commit_running_statistics(device_.compute(), scale);
  if (WeightAverage* average = optimizer_->average()) {
    average->update(rates.slice(kAverageShare, kAverageShare + 1), scale);
  }
}

void TrainStep::begin_average() {
  if (WeightAverage* average = optimizer_->average()) average->begin();
}

void TrainStep::swap_average() {
  if (WeightAverage* average = optimizer_->average()) average->swap();
}

void TrainStep::send_sums() { sums_.start(device_.compute(), replica_.parameters().statistics()); }

StepSums TrainStep::take_sums() {
  const bool awaited = device_.compute().in_order_with_host() || !sums_.finished();
  const auto* sums = static_cast<const float*>(sums_.finish());
  communicator_.require_alive();
  StepSums taken{.loss = static_cast<double>(sums[kLossSum]),
                 .samples = static_cast<std::int64_t>(sums[kSamples]),
                 .stop_wishes = static_cast<int>(sums[kStopWishes]),
                 .grad_norm = static_cast<double>(sums[kGradNorm]),
                 .awaited = awaited};
  if (scales_loss()) {
    taken.skips_in_row = static_cast<std::int64_t>(sums[kSkipsInRow]);
    taken.loss_scale = static_cast<double>(sums[kLossScale]);
  }
  std::copy_n(sums + kToldSums, kTold, taken.told.begin());
  if (taken.skipped()) ++skips_;
  return taken;
}

void TrainStep::broadcast_state(const HostState* read) {
  Stream& stream = device_.communication();
  broadcast_model(device_, communicator_, replica_.parameters());
  for (const StateArena& arena : optimizer_->state()) {
    if (arena.is_of_rows()) continue;  // below, with the rows
    const View numbers = arena.numbers;
    communicator_.broadcast(
        stream, 0, arena.is_of_buffers() ? numbers : numbers.slice(0, replica_.plan().replicated()),
        "optimiser state");
  }
  if (scales_loss()) communicator_.broadcast(stream, 0, loss_scale_->state(), "loss scale");
  stream.synchronize();
  communicator_.require_alive();
  if (scales_loss()) skips_ = loss_scale_->download().skips;
  if (rows_) rows_->hand_out(read, optimizer_->state());
}

HostState TrainStep::download_state(bool rows_of_loss) {
  HostState state;
  if (!rows_ || communicator_.rank() == 0) {
    state = download(device_, replica_.parameters(), optimizer_->state(), rows_of_loss);
  }
  if (rows_) rows_->collect(state, optimizer_->state(), rows_of_loss);
  if (scales_loss()) state.loss_scale = loss_scale_->download();
  return state;
}

void TrainStep::upload_state(const HostState& state) {
  upload(device_, state, replica_.parameters(), optimizer_->state());
  if (scales_loss()) set_loss_scale(state.loss_scale.value_or(LossScaleState{}));
}

void TrainStep::abandon() noexcept {
  communicator_.abort(message_of_current_exception());
  drain(device_.communication());
}

}  // namespace ringlet::train
