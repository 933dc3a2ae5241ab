#include "train/loop/stage_link.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "base/trace.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "train/pipeline/validate.h"

namespace ringlet::train {

namespace {

/// Small enough for a task (Stream::run).
struct FlatMessages {
  const void* out;
  void* in;
  std::int64_t out_count, in_count;
  std::int32_t out_micro_batch, in_micro_batch;
  std::int16_t to, from;
  DType out_type, in_type;
  comm::CollectiveKind out_kind, in_kind;
};

comm::MessageName name_of(const std::optional<Message>& message) {
  if (!message) return {};
  const bool activation = message->payload == Payload::activation;
  return {activation ? comm::CollectiveKind::activation : comm::CollectiveKind::gradient,
          message->micro_batch};
}

}  // namespace

StageLink::StageLink(Device& device, comm::Communicator& stages, Replica& replica)
    : device_(device),
      stages_(stages),
      replica_(replica),
      meeting_(device, stages),
      number_(device, {1}) {}

void StageLink::run(const Move& move, std::span<const std::int64_t> samples) {
  int to = comm::kNobody, from = comm::kNobody;
  ConstView out;
  View in;
  const auto samples_of = [&](const Message& message) {
    return samples[static_cast<std::size_t>(message.micro_batch)];
  };
  if (move.out && samples_of(*move.out) > 0) {
    const int pass = move.out->micro_batch % replica_.passes();
    to = move.out->peer;
    out = move.out->payload == Payload::activation ? replica_.handed_on(pass)
                                                   : replica_.gradient_of_taken(pass);
  }
  const char* activity = "handing on";
  if (move.in && samples_of(*move.in) > 0) {
    const int pass = move.in->micro_batch % replica_.passes();
    const std::int64_t count = samples_of(*move.in);
    const bool activation = move.in->payload == Payload::activation;
    from = move.in->peer;
    in = activation ? replica_.taken(count, pass) : replica_.gradient_of_handed_on(count, pass);
    activity = activation ? "waiting for an activation" : "waiting for a gradient";
  }
  const ScopedSpan span(device_.compute().tracer(), activity, "phase");
  exchange(to, out, from, in, move);
}

void StageLink::exchange(int to, ConstView out, int from, View in, const Move& names) {
  if (to == comm::kNobody && from == comm::kNobody) return;
  comm::Transport* const transport = &stages_.transport();
  Stream& compute = device_.compute();
  const comm::MessageName sent = name_of(names.out), received = name_of(names.in);
  if (compute.in_order_with_host()) {
    const comm::FlightRecorder::Moving moving(transport->recorder(), sent, received);
    return transport->exchange(compute, to, out, from, in);
  }
  // A GPU's communication stream has a thread of its own, which alone may exchange on it.
  const FlatMessages messages{.out = out.absent() ? nullptr : out.address(),
                              .in = in.absent() ? nullptr : in.address(),
                              .out_count = out.storage(),
                              .in_count = in.storage(),
                              .out_micro_batch = sent.micro_batch,
                              .in_micro_batch = received.micro_batch,
                              .to = static_cast<std::int16_t>(to),
                              .from = static_cast<std::int16_t>(from),
                              .out_type = out.dtype(),
                              .in_type = in.dtype(),
                              .out_kind = sent.kind,
                              .in_kind = received.kind};
  meeting_.hold(compute, [&](Stream& stream) {
    stream.run([transport, &stream, m = messages] {
      const comm::FlightRecorder::Moving moving(
          transport->recorder(), {m.out_kind, m.out_micro_batch}, {m.in_kind, m.in_micro_batch});
      transport->exchange(stream, m.to, {m.out, {m.out_count}, m.out_type}, m.from,
                          {m.in, {m.in_count}, m.in_type});
    });
  });
}

void StageLink::receive(std::int64_t samples) {
  if (is_first() || samples == 0) return;
  stages_.set_activity("waiting for an activation");
  exchange(comm::kNobody, {}, stages_.rank() - 1, replica_.taken(samples, 0));
}

void StageLink::send() {
  if (is_last()) return;
  stages_.set_activity("handing on");
  exchange(stages_.rank() + 1, replica_.handed_on(0), comm::kNobody, {});
}

float StageLink::pass_on(float number) {
  if (is_first()) {
    copy_from_host(device_.compute(), &number, number_);
  } else {
    stages_.set_activity("waiting for the stage before");
    exchange(comm::kNobody, {}, stages_.rank() - 1, number_);
  }
  if (!is_last()) exchange(stages_.rank() + 1, number_, comm::kNobody, {});
  return is_first() ? number : read_scalar(device_.compute(), number_);
}

Pipeline pipeline_for(int stage, PipelineSchedule schedule, int stages, int micro_batches,
                      bool recompute) {
  Pipeline pipeline =
      make_pipeline(stages > 1 ? schedule : PipelineSchedule::naive, stages, micro_batches);
  validate(pipeline);
  require_room_for_messages(pipeline, stage);
  if (recompute) require_sent_at_once(pipeline, stage);
  return pipeline;
}

void require_room_for_messages(const Pipeline& pipeline, int stage) {
  const int held = pipeline.held(stage);
  std::set<int> over;  // micro-batches whose backward is done
  for (const Action& action : pipeline.programs.at(static_cast<std::size_t>(stage))) {
    if (const auto* backward = std::get_if<Backward>(&action)) over.insert(backward->micro_batch);
    const auto* move = std::get_if<Move>(&action);
    if (move == nullptr || !move->in) continue;
    const int before = move->in->micro_batch - held;
    if (before < 0 || over.count(before) > 0) continue;
    throw ContractError(
        fmt::format("pipeline '{}': stage {} {} before B{}, and has room for {} micro-batches",
                    pipeline.schedule, stage, receiving(*move->in), before, held));
  }
}

void require_sent_at_once(const Pipeline& pipeline, int stage) {
  std::optional<Message> latest;  // what the pass that ran last could send
  for (const Action& action : pipeline.programs.at(static_cast<std::size_t>(stage))) {
    if (const auto* forward = std::get_if<Forward>(&action)) {
      latest = {stage + 1, Payload::activation, forward->micro_batch};
    } else if (const auto* backward = std::get_if<Backward>(&action)) {
      latest = {stage - 1, Payload::gradient, backward->micro_batch};
    }
    const auto* move = std::get_if<Move>(&action);
    if (move == nullptr || !move->out || move->out == latest) continue;
    throw ContractError(
        fmt::format("pipeline '{}': stage {} {} after another pass has run, and keeps none "
                    "(--recompute stage)",
                    pipeline.schedule, stage, sending(*move->out)));
  }
}

}  // namespace ringlet::train
