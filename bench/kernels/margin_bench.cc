// Times the head of a loss with a margin alone (nn/ops/margin_softmax.h): what one rank computes in
// forward and backward for the samples of all, on embeddings that are given. Beside it the time
// that the machine at least needs: three products at the peak of multiply-adds, and the centres and
// their gradient once through memory at the rate at which it copies. Both are measured here too.
//
//   margin_bench --classes 100000 --ranks 2 --batch 128 --size 512 --json margin.json
//   margin_bench --classes 1000000 --sample-rate 0.1
//
// With --sample-rate a step draws its classes too, and what it needs at least is that of these.
//
// One thread. Nothing is exchanged: other ranks' samples are copies of this one's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/median.h"
#include "bench/fma_peak.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/axis_alone.h"
#include "nn/layers/class_centres.h"
#include "nn/layers/stateless.h"
#include "nn/ops/margin_softmax.h"
#include "nn/parameters.h"

namespace ringlet::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPage = 4096;

struct Flags {
  std::int64_t classes = 100'000, batch = 128, size = 512;
  int ranks = 2, repeats = 9;
  double sample_rate = 1;
  std::filesystem::path json;
};

double seconds_by_clock() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Of processors, by all threads of this process: other programs count little in it.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Seconds {
  double by_clock, of_processors;
};

/// Medians.
template <class F>
Seconds seconds_of(int repeats, F run) {
  std::vector<double> clock, processors;
  run();
  for (int i = 0; i < repeats; ++i) {
    const double begin = seconds_by_clock(), used = processor_seconds();
    run();
    processors.push_back(processor_seconds() - used);
    clock.push_back(seconds_by_clock() - begin);
  }
  return {median_of(clock), median_of(processors)};
}

std::vector<float> spread(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 7919) % 2003) / 1001.0F - 1);
  }
  return values;
}

class Head {
 public:
  explicit Head(const Flags& flags)
      : flags_(flags),
        own_(flags.batch / flags.ranks),
        model_(std::make_unique<nn::Flatten>(), flags.classes, flags.size),
        axis_({.ranks = flags.ranks}, own_),
        registry_(nn::register_model(model_)),
        images_(*device_, {own_, 1, 1, flags.size}),
        labels_(*device_, {own_}, DType::i32),
        seed_(*device_, {1}) {
    for (std::int64_t n = 0; n < own_; ++n) {
      named_.push_back(static_cast<std::int32_t>((n * 977) % flags.classes));
    }
    if (flags.sample_rate < 1) {
      const int shards = flags.classes < 65536 ? 8 : 64;
      model_.centres().sampling = nn::RowSampling{flags.sample_rate, shards, flags.batch};
      sampler_ = std::make_unique<nn::RowSampler>(*model_.centres().sampling, flags.classes,
                                                  axis_.position());
    }
    registry_.place(axis_.position());
    const nn::BatchSpec batch{.tensors = {{nn::kImages, {own_, 1, 1, flags.size}},
                                          {nn::kTargets, {own_}, Layout::nchw, DType::i32}}};
    const nn::Plan plan = nn::plan_training(
        registry_, batch, [this](nn::Tape& tape, const nn::Batch& b) { return loss(tape, b); });
    parameters_ = std::make_unique<nn::Parameters>(*device_, registry_, plan);
    parameters_->initialize(1);
    // The embeddings are a batch to the plan, and have no gradient there.
    const std::int64_t of_embeddings = images_.view().bytes() + kPage;
    arena_ = std::make_unique<Arena>(*device_, plan.activation_bytes + of_embeddings);
    tape_ = std::make_unique<nn::Tape>(*device_, *arena_, registry_.parameters);
    activation_bytes_ = plan.activation_bytes;
    const auto values = spread(own_ * flags.size);
    copy_from_host(stream(), values.data(), images_);
    copy_from_host(stream(), named_.data(), labels_);
    fill(stream(), 1.0F / static_cast<float>(flags.batch), seed_);
  }

  void step() {
    if (sampler_ != nullptr) {
      const auto listed = sampler_->list(steps_++, named_);
      copy_from_host(stream(), listed.data(), model_.centres().listed);
    }
    tape_->begin({.axis = &axis_});
    nn::Batch batch;
    batch.add(nn::kImages, tape_->input(images_));
    batch.add(nn::kTargets, tape_->constant(labels_));
    const nn::Variable result = loss(*tape_, batch);
    tape_->backward(result, seed_);
    stream().synchronize();
  }

  /// That a step works on.
  std::int64_t rows() const { return registry_.parameters.back()->with_gradient()[0]; }
  std::int64_t activation_bytes() const { return activation_bytes_; }
  /// As much as a step reads of the centres, and writes of their gradient.
  View centres() const { return parameters_->values().slice(0, rows() * flags_.size); }
  View gradients() const { return parameters_->gradients().slice(0, rows() * flags_.size); }
  Stream& stream() const { return device_->compute(); }

 private:
  nn::Variable loss(nn::Tape& tape, const nn::Batch& batch) {
    return nn::margin_softmax(model_.forward(tape, batch[nn::kImages]), model_.centres(),
                              batch[nn::kTargets], {.m2 = 0.5, .guard = MarginGuard::hard});
  }

  Flags flags_;
  std::int64_t own_, steps_ = 0;
  std::vector<std::int32_t> named_;
  std::unique_ptr<nn::RowSampler> sampler_;
  std::unique_ptr<Device> device_ = open_device({}, {.threads = 1});
  nn::ClassCentres model_;
  nn::AxisAlone axis_;
  nn::Registry registry_;
  Tensor images_, labels_, seed_;
  std::unique_ptr<nn::Parameters> parameters_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<nn::Tape> tape_;
  std::int64_t activation_bytes_ = 0;
};

void run(const Flags& flags) {
  Head head(flags);
  const double before = measure_fma_peak();
  const Seconds of_step = seconds_of(flags.repeats, [&] { head.step(); });
  const double step = of_step.by_clock;
  const double copied = seconds_of(flags.repeats, [&] {
                          copy(head.stream(), head.centres(), head.gradients());
                        }).by_clock;
  const double peak = 1e9 * std::max(before, measure_fma_peak());
  const double bytes = static_cast<double>(head.centres().bytes());
  const double flops = 3 * 2.0 * static_cast<double>(flags.batch * head.rows() * flags.size);
  // The centres are read by two products, their gradient is written by the third.
  const double floor = flops / peak + 3 * bytes / (2 * bytes / copied);
  fmt::print("head of {} classes, {} samples, embeddings of {}, rank 0 of {}: {} rows a step\n",
             flags.classes, flags.batch, flags.size, flags.ranks, head.rows());
  fmt::print("peak {:.1f} GFLOP/s, copies {:.1f} GB/s\n", peak / 1e9, 2 * bytes / copied / 1e9);
  fmt::print("a step {:.1f} ms, {:.1f} GFLOP, floor {:.1f} ms: {:.2f} times it\n", 1e3 * step,
             flops / 1e9, 1e3 * floor, step / floor);
  fmt::print("of processors {:.1f} ms\n", 1e3 * of_step.of_processors);
  fmt::print("memory beside the centres and their gradient: {:.1f} MB\n",
             static_cast<double>(head.activation_bytes()) / 1e6);
  if (flags.json.empty()) return;
  const nlohmann::json json{{"classes", flags.classes},
                            {"batch", flags.batch},
                            {"size", flags.size},
                            {"ranks", flags.ranks},
                            {"rows", head.rows()},
                            {"sample_rate", flags.sample_rate},
                            {"seconds", step},
                            {"processor_seconds", of_step.of_processors},
                            {"flops", flops},
                            {"peak_flops", peak},
                            {"copy_bytes_per_second", 2 * bytes / copied},
                            {"floor_seconds", floor},
                            {"activation_bytes", head.activation_bytes()}};
  write_file_atomically(flags.json, json.dump(2) + "\n");
}

}  // namespace

}  // namespace ringlet::bench

int main(int argc, char** argv) {
  ringlet::bench::Flags flags;
  CLI::App app("The head of a loss with a margin, alone");
  app.add_option("--classes", flags.classes)->check(CLI::PositiveNumber);
  app.add_option("--batch", flags.batch, "samples of all ranks")->check(CLI::PositiveNumber);
  app.add_option("--size", flags.size, "numbers of an embedding")->check(CLI::PositiveNumber);
  app.add_option("--ranks", flags.ranks, "over which the classes are cut")
      ->check(CLI::PositiveNumber);
  app.add_option("--sample-rate", flags.sample_rate, "of the classes")->check(CLI::Range(0.0, 1.0));
  app.add_option("--repeats", flags.repeats)->check(CLI::PositiveNumber);
  app.add_option("--json", flags.json, "write the figures there");
  CLI11_PARSE(app, argc, argv);
  try {
    ringlet::bench::run(flags);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "margin_bench: error: {}\n", error.what());
    return 1;
  }
}
