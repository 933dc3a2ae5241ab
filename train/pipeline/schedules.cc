#include "train/pipeline/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"

namespace ringlet::train {

namespace {

constexpr std::array kSchedules{PipelineSchedule::naive, PipelineSchedule::gpipe,
                                PipelineSchedule::one_f_one_b};

/// Writes one stage's program. What would go to a stage that is not there is left out.
class ProgramWriter {
 public:
  ProgramWriter(int stage, int stages) : stage_(stage), last_(stage + 1 == stages) {}

  void forward(int k) { program_.emplace_back(Forward{k}); }
  void backward(int k) { program_.emplace_back(Backward{k}); }
  void receive_activation(int k) { move({}, before(Payload::activation, k)); }
  void send_activation(int k) { move(next(Payload::activation, k), {}); }
  void receive_gradient(int k) { move({}, next(Payload::gradient, k)); }
  void send_gradient(int k) { move(before(Payload::gradient, k), {}); }
  /// With the Moves before and behind it, each by itself.
  void whole_forward(int k) {
    receive_activation(k);
    forward(k);
    send_activation(k);
  }
  void whole_backward(int k) {
    receive_gradient(k);
    backward(k);
    send_gradient(k);
  }
  /// In one Move with the next stage.
  void send_activation_receive_gradient(int sent, int received) {
    move(next(Payload::activation, sent), next(Payload::gradient, received));
  }
  /// In one Move with the stage before.
  void send_gradient_receive_activation(int sent, int received) {
    move(before(Payload::gradient, sent), before(Payload::activation, received));
  }
  Program finish() {
    program_.emplace_back(Sync{});
    return std::move(program_);
  }

 private:
  using Side = std::optional<Message>;

  Side next(Payload payload, int k) const {
    return last_ ? Side{} : Message{stage_ + 1, payload, k};
  }
  Side before(Payload payload, int k) const {
    return stage_ == 0 ? Side{} : Message{stage_ - 1, payload, k};
  }
  void move(const Side& out, const Side& in) {
    if (out || in) program_.emplace_back(Move{out, in});
  }

  int stage_;
  bool last_;
  Program program_{};
};

Program naive(int stage, int stages, int micro_batches) {
  ProgramWriter write(stage, stages);
  for (int k = 0; k < micro_batches; ++k) {
    write.whole_forward(k);
    write.whole_backward(k);
  }
  return write.finish();
}

Program gpipe(int stage, int stages, int micro_batches) {
  ProgramWriter write(stage, stages);
  for (int k = 0; k < micro_batches; ++k) write.whole_forward(k);
  for (int k = 0; k < micro_batches; ++k) write.whole_backward(k);
  return write.finish();
}

Program one_f_one_b(int stage, int stages, int micro_batches) {
  ProgramWriter write(stage, stages);
  const int ahead = std::min(micro_batches, stages - 1 - stage);
  for (int k = 0; k < ahead; ++k) write.whole_forward(k);
  const int in_turns = micro_batches - ahead;
  for (int k = 0; k < in_turns; ++k) {
    if (k == 0) {
      write.receive_activation(ahead);
    } else {
      write.send_gradient_receive_activation(k - 1, ahead + k);
    }
    write.forward(ahead + k);
    write.send_activation_receive_gradient(ahead + k, k);
    write.backward(k);
  }
  for (int k = in_turns; k < micro_batches; ++k) {
    if (k > 0) write.send_gradient(k - 1);
    write.receive_gradient(k);
    write.backward(k);
  }
  write.send_gradient(micro_batches - 1);
  return write.finish();
}

Program program_of(PipelineSchedule schedule, int stage, int stages, int micro_batches) {
  if (schedule == PipelineSchedule::naive) return naive(stage, stages, micro_batches);
  if (schedule == PipelineSchedule::gpipe) return gpipe(stage, stages, micro_batches);
  return one_f_one_b(stage, stages, micro_batches);
}

int most_held(PipelineSchedule schedule, int stage, int stages, int micro_batches) {
  if (schedule == PipelineSchedule::naive) return 1;
  if (schedule == PipelineSchedule::gpipe) return micro_batches;
  return std::min(micro_batches, stages - stage);
}

}  // namespace

const char* name_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::naive:
      return "naive";
    case PipelineSchedule::gpipe:
      return "gpipe";
    case PipelineSchedule::one_f_one_b:
      return "1f1b";
  }
  return "?";
}

std::vector<std::string> pipeline_schedule_names() {
  std::vector<std::string> names;
  for (const PipelineSchedule schedule : kSchedules) names.emplace_back(name_of(schedule));
  return names;
}

PipelineSchedule parse_pipeline_schedule(std::string_view name) {
  for (const PipelineSchedule schedule : kSchedules) {
    if (name == name_of(schedule)) return schedule;
  }
  throw ContractError(
      fmt::format("'pipeline' is not {}", fmt::join(pipeline_schedule_names(), ", ")));
}

Pipeline make_pipeline(PipelineSchedule schedule, int stages, int micro_batches) {
  if (stages < 1 || micro_batches < 1) {
    throw ContractError(
        fmt::format("pipeline of {} stages and {} micro-batches: there is at least one of each",
                    stages, micro_batches));
  }
  Pipeline pipeline{.schedule = name_of(schedule), .micro_batches = micro_batches};
  for (int stage = 0; stage < stages; ++stage) {
    pipeline.programs.push_back(program_of(schedule, stage, stages, micro_batches));
    pipeline.most_held.push_back(most_held(schedule, stage, stages, micro_batches));
  }
  return pipeline;
}

}  // namespace ringlet::train
