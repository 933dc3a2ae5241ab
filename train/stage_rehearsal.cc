#include "train/setup/stage_rehearsal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/median.h"
#include "base/stopwatch.h"
#include "kernels/host_copy.h"
#include "train/loop/stage_link.h"
#include "train/loop/train_step.h"
#include "train/setup/stages_setup.h"
#include "train/sync/transport_choice.h"
#include "train/trainer.h"

namespace ringlet::train {

namespace {

constexpr int kWarmUp = 1;

struct Done {
  Action action;
  double begin = 0, end = 0;  // seconds, of one clock for all ranks
  bool again = false;         // a backward that ran its forward again
};

/// What a rank did in a step.
struct RankStep {
  std::vector<Done> actions;
  double updated = 0;  // when its update was over
};

std::size_t index_of(int index) { return static_cast<std::size_t>(index); }

double mean_of(const std::vector<double>& seconds) {
  double sum = 0;
  for (const double one : seconds) sum += one;
  return seconds.empty() ? 0 : sum / static_cast<double>(seconds.size());
}

/// Samples for a rank: noise, so that no kernel meets zeros alone, with classes by turns.
class NoiseBatches {
 public:
  NoiseBatches(Device& device, const ReplicaSpec& spec, std::int64_t samples) {
    const nn::BatchSpec batch = batch_of(spec, samples);
    for (const nn::TensorSpec& tensor : batch.tensors) {
      if (tensor.constant || tensor.wants_gradient) continue;
      Tensor& room = tensor.dtype == DType::i32 ? targets_ : images_;
      room = Tensor(device, tensor.shape, tensor.dtype, tensor.layout);
      const auto numbers = static_cast<std::size_t>(room.view().storage());
      std::uint32_t state = 1;
      const auto next = [&state] { return state = 1664525 * state + 1013904223; };
      if (tensor.dtype == DType::i32) {
        std::vector<std::int32_t> host(numbers);
        for (std::int32_t& label : host) {
          label = static_cast<std::int32_t>((next() >> 16) %
                                            static_cast<std::uint32_t>(spec.input.outputs));
        }
        copy_from_host(device.compute(), host.data(), room);
      } else {
        std::vector<float> host(numbers);
        for (float& pixel : host) pixel = static_cast<float>(next() >> 8) / float{1 << 23} - 1;
        copy_from_host(device.compute(), host.data(), room);
      }
    }
    device.compute().synchronize();
  }

  data::Batch of(std::int64_t samples) const {
    data::Batch batch{.n = samples, .request = {0, 0, samples}};
    if (!images_.view().absent()) batch.images = images_.view().f32();
    if (!targets_.view().absent()) batch.targets = targets_.view().as<std::int32_t>();
    return batch;
  }

 private:
  Tensor images_, targets_;
};

/// One rank's part of the rehearsal.
class Rehearsing {
 public:
  Rehearsing(const StagesSetup& stages, const StageRehearsal& rehearsal, Device& device,
             const Ranks& ranks)
      : rehearsal_(rehearsal),
        pipeline_(pipeline_for(ranks.stage(), rehearsal.execution.pipeline, stages.count(),
                               static_cast<int>(rehearsal.sizes.size()),
                               rehearsal.execution.recompute)),
        program_(pipeline_.programs[index_of(ranks.stage())]),
        is_last_(ranks.is_last()),
        spec_(spec_of_stage(rehearsal.whole, stages, pipeline_, ranks.stage(),
                            rehearsal.execution.recompute)),
        step_(device, ranks, spec_, step_options()),
        link_(device, *ranks.stages, step_.replica()),
        batches_(device, spec_, rehearsal.sizes.front()) {
    step_.replica().parameters().initialize(spec_.recipe.seed);
    for (const std::int64_t size : rehearsal.sizes) samples_ += size;
  }

  void evaluate() { step_.replica().rehearse_evaluation(spec_.max_eval_batch); }

  RankStep run_step(const Stopwatch& clock) {
    RankStep done;
    done.actions.reserve(program_.size());
    step_.begin({}, rehearsal_.replicas * samples_, is_last_ ? samples_ : 0, false);
    int latest = -1;  // whose forward was the last pass to run
    for (const Action& action : program_) {
      const double begin = clock.seconds();
      const bool again = act(action, latest);
      done.actions.push_back({action, begin, clock.seconds(), again});
    }
    step_.send_sums();
    (void)step_.take_sums();
    step_.update();
    done.updated = clock.seconds();
    return done;
  }

 private:
  TrainStepOptions step_options() const {
    return {.sync = {static_cast<const BucketSpec&>(rehearsal_.execution),
                     static_cast<const GradientSpec&>(spec_.recipe), true},
            .make_optimizer = rehearsal_.make_optimizer,
            .world_statistics = spec_.recipe.batch_norm == BatchStatistics::world};
  }

  /// Returns whether a backward ran its forward again.
  bool act(const Action& action, int& latest) {
    const int passes = step_.replica().passes();
    if (const auto* forward = std::get_if<Forward>(&action)) {
      latest = forward->micro_batch;
      step_.forward(batches_.of(rehearsal_.sizes[index_of(latest)]), micro_of(latest), {},
                    latest % passes);
    } else if (const auto* backward = std::get_if<Backward>(&action)) {
      step_.backward(backward->micro_batch % passes);
      return spec_.recompute && std::exchange(latest, -1) != backward->micro_batch;
    } else if (const auto* move = std::get_if<Move>(&action)) {
      link_.run(*move, rehearsal_.sizes);
    } else {
      step_.finish_gradients();
    }
    return false;
  }

  /// As outside of exact mode, whose tree of shards costs little more.
  MicroBatch micro_of(int k) const {
    const bool last = k + 1 == static_cast<int>(rehearsal_.sizes.size());
    return {.first_of_shard = k == 0,
            .last_of_shard = last,
            .last = last,
            .world_samples = rehearsal_.replicas * rehearsal_.sizes[index_of(k)],
            .pass = k};
  }

  const StageRehearsal& rehearsal_;
  Pipeline pipeline_;
  const Program& program_;
  bool is_last_;
  ReplicaSpec spec_;
  TrainStep step_;
  StageLink link_;
  NoiseBatches batches_;
  std::int64_t samples_ = 0;
};

/// What was found, of all steps of all ranks.
class Times {
 public:
  Times(int stages, const StageRehearsal& rehearsal,
        const std::vector<std::vector<RankStep>>& ranks)
      : rehearsal_(rehearsal), ranks_(ranks), stages_(stages) {}

  PipelineTimes found() const {
    PipelineTimes times;
    for (int stage = 0; stage < stages_; ++stage) {
      const std::vector<double> none(rehearsal_.sizes.size());
      times.forwards.push_back(passes<Forward>(stage, none));
      times.backwards.push_back(passes<Backward>(stage, times.forwards.back()));
      times.forward.push_back(mean_of_whole(times.forwards.back()));
      times.backward.push_back(mean_of_whole(times.backwards.back()));
      add_ends(stage, times);
      if (stage == 0) continue;
      times.activation.push_back(mean_of(messages(stage - 1, stage, Payload::activation)));
      times.gradient.push_back(mean_of(messages(stage, stage - 1, Payload::gradient)));
    }
    return times;
  }

 private:
  const std::vector<RankStep>& steps_of(int stage, int replica) const {
    return ranks_[index_of(stage * rehearsal_.replicas + replica)];
  }

  /// f(replica, number of the step, step)
  template <class F>
  void for_each_step(int stage, F f) const {
    for (int replica = 0; replica < rehearsal_.replicas; ++replica) {
      for (std::size_t step = kWarmUp; step < steps_of(stage, replica).size(); ++step) {
        f(replica, step, steps_of(stage, replica)[step]);
      }
    }
  }

  /// Whether micro-batch k is as large as the first.
  bool is_whole(int k) const { return rehearsal_.sizes[index_of(k)] == rehearsal_.sizes.front(); }

  double mean_of_whole(const std::vector<double>& passes) const {
    std::vector<double> whole;
    for (std::size_t k = 0; k < passes.size(); ++k) {
      if (is_whole(static_cast<int>(k))) whole.push_back(passes[k]);
    }
    return mean_of(whole);
  }

  static std::vector<double> medians_of(const std::map<int, std::vector<double>>& by_micro_batch) {
    std::vector<double> medians;
    for (const auto& [k, seconds] : by_micro_batch) medians.push_back(median_of(seconds));
    return medians;
  }

  /// The median of each micro-batch, less `again` where a forward was run again.
  template <class Pass>
  std::vector<double> passes(int stage, const std::vector<double>& again) const {
    std::map<int, std::vector<double>> seconds;
    for_each_step(stage, [&](int, std::size_t, const RankStep& step) {
      for (const Done& done : step.actions) {
        const auto* pass = std::get_if<Pass>(&done.action);
        if (pass == nullptr) continue;
        const int k = pass->micro_batch;
        const double spent = done.end - done.begin - (done.again ? again[index_of(k)] : 0);
        seconds[k].push_back(std::max(0.0, spent));
      }
    });
    return medians_of(seconds);
  }

  /// The same of messages, from when both sides have come to when it is there.
  std::vector<double> messages(int from, int to, Payload payload) const {
    std::map<int, std::vector<double>> seconds;
    for_each_step(to, [&](int replica, std::size_t at, const RankStep& step) {
      for (const Done& received : step.actions) {
        const auto* move = std::get_if<Move>(&received.action);
        if (move == nullptr || !move->in || move->in->peer != from) continue;
        const int k = move->in->micro_batch;
        const Message wanted{to, payload, k};
        for (const Done& sent : steps_of(from, replica)[at].actions) {
          const auto* other = std::get_if<Move>(&sent.action);
          if (other == nullptr || other->out != wanted || !is_whole(k)) continue;
          const double begin = std::max(received.begin, sent.begin);
          seconds[k].push_back(std::max(0.0, received.end - begin));
        }
      }
    });
    return medians_of(seconds);
  }

  /// A Sync is the last action.
  void add_ends(int stage, PipelineTimes& times) const {
    std::vector<double> syncs, updates;
    for_each_step(stage, [&](int, std::size_t at, const RankStep& step) {
      double all_there = 0;
      for (const std::vector<RankStep>& rank : ranks_) {
        all_there = std::max(all_there, rank[at].actions.back().begin);
      }
      const double synced = step.actions.back().end;
      syncs.push_back(std::max(0.0, synced - all_there));
      updates.push_back(step.updated - synced);
    });
    times.sync.push_back(median_of(std::move(syncs)));
    times.update.push_back(median_of(std::move(updates)));
  }

  const StageRehearsal& rehearsal_;
  const std::vector<std::vector<RankStep>>& ranks_;
  int stages_;
};

}  // namespace

bool can_rehearse(const ReplicaSpec& whole) {
  return !whole.recipe.has_margin() && whole.fields.empty() &&
         !task_of(whole)->loss_reads_samples();
}

RehearsedStages rehearse_stages(const StagesSetup& stages, const StageRehearsal& rehearsal) {
  const int replicas = rehearsal.replicas;
  Execution execution = rehearsal.execution;
  execution.stages = std::to_string(stages.count());
  execution.devices.assign(index_of(stages.count() * replicas), DeviceId{});
  execution.in_processes = false;
  execution.transport = TransportChoice::local;
  std::vector<std::vector<RankStep>> ranks(execution.devices.size());
  std::vector<std::int64_t> scratch(ranks.size());
  comm::LocalGroup group = threads_of(execution);
  group.name_ranks(
      [&](const std::vector<int>& named) { return name_of_ranks(stages, named, replicas); });
  const Stopwatch clock;
  run_ranks(group, decided(execution), [&](Device& device, const Ranks& of_rank) {
    {
      Rehearsing rank(stages, rehearsal, device, of_rank);
      std::vector<RankStep>& mine = ranks[index_of(of_rank.world.rank())];
      for (int i = 0; i < kWarmUp + rehearsal.steps; ++i) mine.push_back(rank.run_step(clock));
      rank.evaluate();
    }
    scratch[index_of(of_rank.world.rank())] = device.bytes_held();  // all that is left
  });
  RehearsedStages found{.times = Times(stages.count(), rehearsal, ranks).found()};
  for (int stage = 0; stage < stages.count(); ++stage) {
    found.scratch.push_back(scratch[index_of(stage * replicas)]);
  }
  return found;
}

void choose_length(StageRehearsal& rehearsal, int stages, double step_seconds) {
  constexpr double kSeconds = .5, kLong = 2.5;
  constexpr int kMostSteps = 25;
  const double steps = std::ceil(kSeconds / std::max(step_seconds, kSeconds / kMostSteps));
  rehearsal.steps = std::clamp(static_cast<int>(steps), 1, kMostSteps);
  if (step_seconds <= kLong) return;
  const auto all = std::ssize(rehearsal.sizes);
  const auto some = static_cast<std::int64_t>(static_cast<double>(all) * kLong / step_seconds);
  const auto least = std::min<std::int64_t>(all, 2 * std::int64_t{stages});
  rehearsal.sizes.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(some, least, all)));
}

}  // namespace ringlet::train
