#include "bench/training/training_bench.h"

#include <algorithm>
#include <atomic>

#include "data/stop_request.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

/// Floating-point operations of a training step for one sample.
double flops_per_sample(const train::ReplicaSpec& spec, bool fuse) {
  const auto model = train::make_model(spec);
  const nn::Registry registry = nn::register_model(*model);
  constexpr std::int64_t kSamples = kLanes;  // a full block, so that no lane is idle
  const nn::InputSpec input{{kSamples, spec.input.channels, spec.input.height, spec.input.width},
                            spec.layout};
  const nn::Plan plan = nn::plan_training(*model, registry, input, nn::softmax_cross_entropy, fuse);
  return (plan.forward.flops + plan.backward.flops) / kSamples;
}

class StepTimes : public train::RunListener {
 public:
  void step_done(const train::StepReport& report) override { seconds.push_back(report.seconds); }
  std::vector<double> seconds;
};

train::PhaseSeconds divided(const train::PhaseSeconds& sum, double by) {
  return {sum.data / by, sum.forward / by, sum.backward / by, sum.sync / by, sum.update / by};
}

/// False where somebody asked to stop.
bool run_steps(train::TrainLoop& loop, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    if (!loop.step()) return false;
  }
  return true;
}

}  // namespace

TrainingSpeed measure_training(const train::RunSetup& setup, std::int64_t warm_up,
                               std::int64_t steps) {
  TrainingSpeed speed;
  speed.steps = steps;
  StepTimes times;
  train::RunListener* const listener = &times;
  std::atomic<bool> stopped{false};
  comm::LocalGroup group = train::threads_of(setup.options.execution);
  train::run_replicas(
      group, setup.options.execution, [&](Device& device, comm::Communicator& communicator) {
        const bool first = communicator.rank() == 0;
        train::TrainLoop loop(
            setup, device, communicator,
            first ? std::span(&listener, 1) : std::span<train::RunListener* const>());
        if (!run_steps(loop, warm_up)) return stopped.store(true);
        loop.settle();
        const train::PhaseSeconds before = loop.phases();
        if (!run_steps(loop, steps)) return stopped.store(true);
        loop.settle();
        if (first) {
          speed.phases = divided(loop.phases().since(before), static_cast<double>(steps));
        }
      });
  if (stopped) throw data::Stopped();
  // The last ones in flight come all at once: they say nothing of a step.
  const std::int64_t in_flight = std::min<std::int64_t>(setup.steps_in_flight, steps - 1);
  std::vector<double> measured(times.seconds.end() - steps, times.seconds.end() - in_flight);
  std::sort(measured.begin(), measured.end());
  speed.median_seconds = measured[measured.size() / 2];
  speed.fastest_seconds = measured.front();
  const auto batch = static_cast<double>(setup.partition.step_range(0).size());
  speed.samples_per_second = batch / speed.median_seconds;
  speed.nominal_flops = batch * flops_per_sample(setup.replica, false);
  speed.computed_flops = batch * flops_per_sample(setup.replica, setup.replica.fuse);
  return speed;
}

}  // namespace ringlet::bench
