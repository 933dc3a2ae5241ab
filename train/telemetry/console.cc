#include "train/telemetry/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/one_line.h"
#include "base/processors.h"
#include "kernels/device.h"
#include "train/forecast/forecast.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {

namespace {

std::string devices_in_words(const Execution& execution) {
  std::vector<std::string> names;
  for (const DeviceId& id : execution.devices) {
    if (std::find(names.begin(), names.end(), id.to_string()) == names.end()) {
      names.push_back(id.to_string());
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// "6 epochs", "1 step"
std::string counted(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

/// "256 samples a step: 2 replicas x 128", "256 samples a step: 86 + 85 + 85 over 3 replicas"
std::string batch_in_words(const StartReport& report) {
  const std::vector<std::int64_t>& shares = report.batch_of_replica;
  const std::int64_t batch = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::string text = counted(batch, "sample") + " a step";
  if (batch < report.options.recipe.batch_size) text += ", all there are";
  if (shares.size() > 1) {
    const bool even = std::all_of(shares.begin(), shares.end(),
                                  [&](std::int64_t share) { return share == shares.front(); });
    text += even ? fmt::format(": {} replicas x {}", shares.size(), shares.front())
                 : fmt::format(": {} over {} replicas", fmt::join(shares, " + "), shares.size());
  }
  const Recipe& recipe = report.options.recipe;
  if (recipe.accumulate > 1) text += fmt::format(", each in {} passes", recipe.accumulate);
  if (recipe.exact) text += fmt::format(", exact: {} shards in one tree", report.shards);
  if (report.plan.running_elements > 0 && (shares.size() > 1 || recipe.exact)) {
    text += fmt::format(", batch norm by {}", recipe.batch_norm == BatchStatistics::world
                                                  ? "the world's batch"
                                              : recipe.exact ? "shard"
                                                             : "replica");
  }
  return text;
}

/// "bf16 activations and products, all else f32"; empty for f32.
std::string precision_in_words(const Recipe& recipe) {
  switch (recipe.precision) {
    case Precision::f32:
    case Precision::automatic:  // a run has none
      break;
    case Precision::tf32:
      return "products of f32 with factors rounded to 11 bits, on GPUs";
    case Precision::bf16:
      return "bf16 activations and products, all else f32";
    case Precision::f16:
      return "f16 activations and products, all else f32; the loss is scaled";
  }
  return {};
}

/// "cosine from lr 0.1 to 0"
std::string schedule_in_words(const Recipe& recipe) {
  switch (recipe.schedule) {
    case ScheduleKind::one_cycle:
      return fmt::format("one-cycle to lr {:g}", recipe.lr);
    case ScheduleKind::step:
      return fmt::format("lr {:g}, times {:g} each {}", recipe.lr, recipe.gamma,
                         counted(recipe.step_epochs, "epoch"));
    case ScheduleKind::cosine:
      return fmt::format("cosine from lr {:g} to {:g}", recipe.lr, recipe.min_lr);
    case ScheduleKind::polynomial:
      return fmt::format("polynomial of power {:g} from lr {:g} to {:g}", recipe.power, recipe.lr,
                         recipe.min_lr);
    case ScheduleKind::constant:
      break;
  }
  return fmt::format("lr {:g}", recipe.lr);
}

std::string rates_in_words(const Recipe& recipe) {
  std::string text = schedule_in_words(recipe);
  if (recipe.head_lr > 0) text += fmt::format(", {:g} for the last layer", recipe.head_lr);
  if (recipe.warmup_epochs > 0) {
    text += fmt::format(", warm-up of {:g} epochs", recipe.warmup_epochs);
  }
  if (recipe.momentum > 0) text += fmt::format(", momentum {:g}", recipe.momentum);
  if (recipe.nesterov) text += " (Nesterov)";
  if (recipe.optimizer != Recipe{}.optimizer) text += ", " + recipe.optimizer;
  if (recipe.weight_decay > 0) {
    text += fmt::format(", weight decay {:g}", recipe.weight_decay);
    if (recipe.no_decay != "none") text += " (not of " + recipe.no_decay + ")";
  }
  if (recipe.ema > 0) text += fmt::format(", weights averaged by {:g}", recipe.ema);
  if (recipe.clip_norm > 0) text += fmt::format(", gradients to norm {:g}", recipe.clip_norm);
  return text + in_words(static_cast<const LossSpec&>(recipe)) +
         in_words(static_cast<const ClassificationSpec&>(recipe));
}

std::string frozen_in_words(const nn::Plan& plan, const Recipe& recipe) {
  std::int64_t count = 0;
  for (const nn::PlannedParameter& planned : plan.parameters) {
    if (plan.is_frozen(planned)) count += planned.shape.count();
  }
  return fmt::format("{} of them, {}", with_commas(count), on_one_line(recipe.freeze));
}

std::string transport_in_words(const StartReport& report) {
  return report.path.empty() ? name_of(report.options.execution.transport) : report.path;
}

std::string sync_in_words(const StartReport& report) {
  const bool is_cut = !report.stages.empty();
  if (report.batch_of_replica.size() == 1) {
    return is_cut ? "one replica; its stages hand on activations and gradients"
                  : "nothing to synchronise";
  }
  const Execution& execution = report.options.execution;
  const Recipe& recipe = report.options.recipe;
  const bool any_between = std::any_of(report.buckets.begin(), report.buckets.end(),
                                       [](auto& b) { return b.between != DType::f32; });
  std::string narrow;
  if (recipe.grad_dtype != DType::f32 && (any_between || !recipe.narrow_between)) {
    narrow =
        fmt::format(" as {}{}", name_of(recipe.grad_dtype), any_between ? " between machines" : "");
  }
  const bool has_choice =
      execution.in_processes || execution.devices.front().kind == DeviceKind::cuda;
  return fmt::format(
      "{} all-reduce of {} KiB{}{} in {}, overlap {}{}", report.sync,
      wire_bytes(report.buckets) / 1024, narrow, is_cut ? " of stage 0" : "",
      counted(std::count_if(report.buckets.begin(), report.buckets.end(),
                            [](const Bucket& bucket) { return bucket.parameters > 0; }),
              "bucket"),
      execution.overlap ? "on" : "off",
      has_choice ? ", transport " + transport_in_words(report) : "");
}

/// "40 s", "12 min", "3.5 h"
std::string about(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  return fmt::format("{:.1f} h", seconds / kHour);
}

/// The --threads that keep all processors busy; 0: these do, or other devices compute.
int idle_threads(const Execution& execution) {
  const bool on_processors = execution.devices.front().kind == DeviceKind::cpu;
  if (!on_processors || execution.in_processes) return 0;
  const int threads = usable_processors() / static_cast<int>(execution.devices.size());
  return threads > execution.threads ? threads : 0;
}

constexpr std::size_t kBucketsShown = 16;

/// ", 0.039 ms a step by the cost model"
std::string prediction_in_words(const SyncPlan& plan) {
  if (plan.source == PredictedFrom::nowhere) return "";
  return fmt::format(
      ", {:.3f} ms a step by {}", 1e3 * plan.seconds(),
      plan.source == PredictedFrom::tuning ? "what ringlet tune measured" : "the cost model");
}

/// A line for each bucket where there are several; `taken` may be empty.
void print_sums(std::FILE* out, const SyncPlan& plan, const std::vector<double>& taken) {
  if (plan.sums.size() < 2) return;
  const std::size_t shown = std::min(plan.sums.size(), kBucketsShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const PlannedSum& sum = plan.sums[i];
    fmt::print(out, "          {}: {:.1f} KiB by {}", sum.name,
               static_cast<double>(sum.bytes) / 1024, sum.strategy);
    if (plan.source != PredictedFrom::nowhere) fmt::print(out, ", {:.3f} ms", 1e3 * sum.seconds);
    if (!taken.empty()) fmt::print(out, " predicted, {:.3f} ms taken", 1e3 * taken[i]);
    fmt::print(out, "\n");
  }
  if (shown < plan.sums.size())
    fmt::print(out, "          and {} more\n", plan.sums.size() - shown);
}

void print_stages(std::FILE* out, const Forecast& forecast) {
  std::istringstream lines(to_text(stage_table(forecast.stages, forecast.measured)));
  for (std::string line; std::getline(lines, line);) fmt::print(out, "          {}\n", line);
}

}  // namespace

std::string with_commas(std::int64_t number) {
  const std::string digits = fmt::format("{}", number < 0 ? -number : number);
  std::string text = number < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string in_words(const std::vector<Figure>& figures) {
  std::vector<std::string> words;
  for (const Figure& figure : figures) {
    words.push_back(fmt::format("{} {:.2f}{}{}", figure.name, figure.value,
                                figure.unit.empty() ? "" : " ", figure.unit));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string in_words_of_lengths(const Evaluation& test) {
  return fmt::format(
      "{} of {} test embeddings are shorter than 1e-12: such a one is as near to any class, and "
      "learns nothing",
      with_commas(test.without_length), with_commas(test.samples));
}

void Console::started(const StartReport& report) {
  const Recipe& recipe = report.options.recipe;
  const Execution& execution = report.options.execution;
  steps_per_epoch_ = report.steps_per_epoch;
  last_step_ = report.planned_steps;
  if (report.options.max_steps >= 0) last_step_ = std::min(last_step_, report.options.max_steps);
  first_step_ = report.first_step;
  idle_threads_ = idle_threads(report.options.execution);
  epochs_ = recipe.epochs;
  say("data", on_one_line(report.data));
  if (!report.verification.empty()) say("pairs", on_one_line(report.verification));
  say("model",
      fmt::format("{}, {} parameters, {:.1f} MFLOP to learn a sample", recipe.model,
                  with_commas(report.plan.parameter_count),
                  (report.plan.forward.flops + report.plan.backward.flops) * 1e-6 /
                      static_cast<double>(std::max<std::int64_t>(1, report.samples_per_pass))));
  if (report.plan.frozen > 0) say("frozen", frozen_in_words(report.plan, recipe));
  if (!report.centres.empty()) say("classes", report.centres);
  say("training", fmt::format("{} of {}, {}", counted(recipe.epochs, "epoch"),
                              counted(report.steps_per_epoch, "step"), rates_in_words(recipe)));
  if (!report.low_scale.empty()) say("scale", report.low_scale);
  if (recipe.precision != Precision::f32) say("precision", precision_in_words(recipe));
  say("batch", batch_in_words(report));
  const std::size_t processes = static_cast<std::size_t>(report.ranks) / execution.devices.size();
  say("replicas", fmt::format("{}{} on {}, {} each, {}, layout {}", report.batch_of_replica.size(),
                              processes > 1 ? fmt::format(" in {} processes", processes) : "",
                              devices_in_words(execution), counted(execution.threads, "thread"),
                              name_of(detect_instruction_set()), name_of(report.layout)));
  if (!report.stages.empty()) say("stages", report.stages);
  if (report.forecast != nullptr) print_stages(out_, *report.forecast);
  if (!report.hosts.empty()) say("machines", on_one_line(report.hosts));
  sync_plan_ = report.sync_plan;
  say("sync", sync_in_words(report) + prediction_in_words(sync_plan_));
  print_sums(out_, sync_plan_, {});
  if (const std::string picked = in_words(report.pick); !picked.empty()) say("", picked);
  if (!report.why_no_graph.empty()) graph_refused(report.why_no_graph);
  if (first_step_ > 0) say("resumed", "after step " + with_commas(first_step_));
  if (!report.length.empty()) say("length", report.length);
  table_ =
      ProgressTable(room_on(out_), report.options.task == nullptr ? "test accuracy" : "measured");
  fmt::print(out_, "\n{}", table_.head());
  std::fflush(out_);
  since_start_ = since_line_ = Stopwatch();
}

void Console::say(const char* what, const std::string& text) {
  constexpr std::size_t kIndent = 10;
  const std::size_t room = room_on(out_);
  if (text.size() <= room - kIndent) {  // as it is: a folder's name may hold any blanks
    fmt::print(out_, "{:<{}}{}\n", what, kIndent, text);
    return;
  }
  std::string lines = fmt::format("{:<{}}", what, kIndent - 1);
  std::size_t at = lines.size();
  std::istringstream words(text);
  for (std::string word; words >> word; at += 1 + word.size()) {
    if (at >= kIndent && at + 1 + word.size() > room) {
      lines += "\n" + std::string(kIndent - 1, ' ');
      at = kIndent - 1;
    }
    lines += " " + word;
  }
  fmt::print(out_, "{}\n", lines);
}

void Console::graph_refused(const std::string& why) {
  say("graph", "off: a step cannot be captured, " + on_one_line(why));
}

void Console::step_done(const StepReport& report) {
  recent_seconds_ += report.seconds;
  recent_samples_ += static_cast<double>(report.samples);
  recent_data_seconds_ += report.data_seconds;
  skips_ += report.skipped ? 1 : 0;
  if (report.loss_scale > 0) {
    ++scaled_steps_;
    loss_scale_ = report.loss_scale;
  }
  say_cost(report);
  if (since_line_.seconds() < seconds_between_lines_) return;
  const auto done = static_cast<double>(report.step - first_step_);
  const double left = since_start_.seconds() / done * static_cast<double>(last_step_ - report.step);
  const std::size_t indent = terminal_ ? 0 : 8;  // beside plain lines the table's rows stand out
  const std::string line = progress_line({.epoch = report.epoch,
                                          .epochs = epochs_,
                                          .step_in_epoch = report.step_in_epoch,
                                          .steps_per_epoch = steps_per_epoch_,
                                          .loss = report.loss,
                                          .samples_per_second = recent_samples_ / recent_seconds_,
                                          .seconds_left = left,
                                          .data_share = recent_data_seconds_ / recent_seconds_,
                                          .skips = skips_},
                                         room_on(out_) - indent);
  if (terminal_) {
    fmt::print(out_, "\r\x1b[2K{}", line);
  } else {
    fmt::print(out_, "{:{}}{}\n", "", indent, line);
  }
  std::fflush(out_);
  line_shown_ = terminal_;
  recent_seconds_ = recent_samples_ = recent_data_seconds_ = 0;
  since_line_ = Stopwatch();
}

/// Says once what the run will take, where that is worth knowing. The first step makes ready what
/// the others use.
void Console::say_cost(const StepReport& report) {
  constexpr std::int64_t kSteps = 3;
  constexpr double kShort = 30;  // seconds
  const std::int64_t done = report.step - first_step_;
  if (done == 1) since_first_ = Stopwatch();
  if (done != kSteps) return;
  const double step = since_first_.seconds() / static_cast<double>(kSteps - 1);
  const double all = step * static_cast<double>(last_step_ - first_step_);
  if (all < kShort) return;
  clear_line();
  const std::string hint =
      idle_threads_ == 0
          ? ""
          : fmt::format("; --threads {} would keep all processors busy", idle_threads_);
  fmt::print(out_, "{:8}about {} of training, by the first {} steps{}\n", "", about(all), kSteps,
             hint);
  std::fflush(out_);
}

void Console::clear_line() {
  if (line_shown_) std::fputs("\r\x1b[2K", out_);
  line_shown_ = false;
}

void Console::epoch_done(const EpochReport& report) {
  clear_line();
  interference_ += report.interference;
  core_ += report.core;
  fmt::print(out_, "{}", table_.row(report));
  if (!report.told.empty()) say("training", in_words(report.told));
  if (report.stages) say("stages", in_words(*report.stages));
  if (report.test.without_length > 0 && !told_of_lengths_) {
    told_of_lengths_ = true;
    say("lengths", in_words_of_lengths(report.test));
  }
  std::fflush(out_);
}

/// The lines that InsightFace's logs have.
void Console::verified(const VerificationReport& report) {
  clear_line();
  for (std::size_t i = 0; i < report.sets.size(); ++i) {
    const Verified& set = report.sets[i];
    const std::string about = fmt::format("[{}][{}]", on_one_line(set.name), report.step);
    fmt::print(out_, "{}XNorm: {:.6f}\n", about, set.mean_length);
    fmt::print(out_, "{}Accuracy-Flip: {}\n", about, in_words(set.figures.grid));
    fmt::print(out_, "{}Accuracy-Highest: {:.5f}\n", about, report.best[i].accuracy);
    if (set.zero_embeddings > 0) {
      fmt::print(out_, "{}{} of {} embeddings have no length; such a one is like no other\n", about,
                 set.zero_embeddings, 2 * set.figures.pairs);
    }
  }
  std::fflush(out_);
}

void Console::finish() {
  clear_line();
  if (const std::string busy = in_words(interference_, "replica 0's"); !busy.empty()) {
    fmt::print(out_, "\n");
    say("busy", busy + ": the times above are a busy machine's");
  }
  constexpr std::int64_t kFewLooks = 6;
  const std::string shared =
      shared_core_words(core_.share(), "replica 0's core was", "its other hyper-thread",
                        "steps take up to twice as long");
  if (!shared.empty() && core_.looks >= kFewLooks) {
    fmt::print(out_, "\n");
    say("shared", shared);
  }
  if (scaled_steps_ > 0) {
    fmt::print(out_, "\n");
    say("f16", fmt::format("{} of {} skipped, the last loss times {:g}", with_commas(skips_),
                           counted(scaled_steps_, "step"), loss_scale_));
  }
  print_sync_taken();
}

void Console::print_sync_taken() {
  if (sync_taken_.steps == 0) return;
  const std::vector<double>& taken = sync_taken_.seconds;
  std::string text;
  if (!taken.empty()) {  // not on a GPU
    text = fmt::format("{:.3f} ms a step (median, with the wait for the last replica), ",
                       1e3 * std::accumulate(taken.begin(), taken.end(), 0.0));
  }
  fmt::print(out_, "\n");
  say(taken.empty() ? "sync" : "sync took",
      text + fmt::format("replica 0 waited {:.3f} ms (mean)", 1e3 * sync_taken_.waited_seconds));
  print_sums(out_, sync_plan_, taken);
}

}  // namespace ringlet::train
