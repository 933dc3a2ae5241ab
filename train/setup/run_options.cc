#include "train/setup/run_options.h"

#include "comm/all_reduce/strategies.h"
#include "data/loader.h"
#include "kernels/device.h"
#include "train/pipeline/schedules.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {

namespace {

constexpr double kShortestTimeout = 0.01;  // seconds

std::vector<std::string> strategy_names() {
  const auto names = comm::Strategies().names();
  return {names.begin(), names.end()};
}

std::vector<Option<Execution>> execution_options() {
  std::vector<Option<Execution>> rows{
      option("threads", &Execution::threads,
             {.help = "CPU threads of each replica",
              .range = from(1).to(DeviceOptions::kMostThreads)}),
      option("workers", &Execution::workers,
             {.help = "threads of each replica that read and decode images; 0: in the step itself",
              .range = from(0).to(data::LoaderOptions::kMostWorkers),
              .default_in_words = "1; on GPUs up to 8",
              .open_below_zero = true}),
      choice_option("layout", &Execution::layout,
                    {{"auto", LayoutChoice::automatic},
                     {"nchw", LayoutChoice::nchw},
                     {"lanes", LayoutChoice::lanes},
                     {"nhwc", LayoutChoice::nhwc}},
                    {.help = "of images in memory; auto takes the faster one: lanes on CPUs, nhwc "
                             "on GPUs with --precision tf32, bf16 or f16, else nchw"}),
      option("comm_timeout", &Execution::comm_timeout,
             {.help = "seconds that a replica waits for another before it names it and stops",
              .range = from(kShortestTimeout)}),
      option("tf32", &Execution::tf32,
             {.help = "multiply f32 on tensor cores, with factors rounded to 11 bits: --precision "
                      "tf32"}),
      option("deterministic", &Execution::deterministic,
             {.help = "use only kernels that give the same bits in every run"}),
      option("autotune", &Execution::autotune,
             {.help = "time the library's kernels for each shape and take the fastest"}),
      choice_option("graph", &Execution::graph, {{"on", true}, {"off", false}},
                    {.help = "with one replica, or over NCCL with one in each process, and one "
                             "stage: launch a whole step at once, as a CUDA graph"}),
      option("sync", &Execution::sync,
             {.help = "how gradients are summed",
              .choices = strategy_names,
              .other_names = true,
              .default_in_words = "auto; doubling with --exact"}),
      choice_option("probe", &Execution::probe, {{"on", true}, {"off", false}},
                    {.help = "let --sync auto time its strategies at the start, for 50 ms at "
                             "most, where nothing was tuned; off: by what they state"}),
      option("stages", &Execution::stages,
             {.help = "cut the model into N stages, each on a device of its own, or into these: "
                      "FIRST..LAST,FIRST..LAST, by names of layers",
              .value_name = "N|LIST"}),
      named_option<Execution>(
          "pipeline", [](const Execution& execution) { return name_of(execution.pipeline); },
          [](Execution& execution, const std::string& name) {
            execution.pipeline = parse_pipeline_schedule(name);
          },
          {.help = "in which order stages do their forwards and backwards",
           .choices = pipeline_schedule_names}),
      choice_option("recompute", &Execution::recompute, {{"none", false}, {"stage", true}},
                    {.help = "what a stage keeps of a micro-batch between forward and backward: "
                             "all, or its input alone, to run the forward again"}),
      choice_option("balance", &Execution::measures_stages,
                    {{"measured", true}, {"planned", false}},
                    {.help = "what layers cost where --stages is a number: their times on this "
                             "device, or the dry run's operations and bytes"}),
      named_option<Execution>(
          "transport", [](const Execution& execution) { return name_of(execution.transport); },
          [](Execution& execution, const std::string& name) {
            execution.transport = transport_named(name);
          },
          {.help = "how data go between replicas: local copies between threads, memory that "
                   "processes share (shm) or Gloo between processes, NCCL with a GPU each; auto "
                   "takes NCCL where it can be had",
           .choices = transport_names})};
  for (const Option<BucketSpec>& row : bucket_options()) rows.emplace_back(row);
  rows.push_back(option("check_replicas", &Execution::check_replicas,
                        {.help = "compare the replicas, by a hash of each, every N steps as well; "
                                 "0: never",
                         .range = from(0),
                         .default_in_words = "after step 1, at each epoch's end, before a save",
                         .open_below_zero = true}));
  rows.push_back(option("emulate_precision", &Execution::emulate_precision,
                        {.help = "let processors compute bf16 and f16 through f32: slower than "
                                 "f32, to learn and to test"}));
  return rows;
}

std::vector<Option<Files>> file_options() {
  return {
      option("data_dir", &Files::data_dir,
             {.help = "where Fashion-MNIST lies, if not in the system's place [$RINGLET_DATA], or "
                      "CIFAR-10",
              .value_name = "DIR"}),
      option("init", &Files::init,
             {.help = "start from these weights (.pth or safetensors), those of the run in "
                      "this folder, or resnet18's, say, in PyTorch's caches",
              .value_name = "FILE|DIR|MODEL"}),
      option("init_centres", &Files::init_centres,
             {.help = "start from the centres of classes in this file, or those of the run in this "
                      "folder, with a --loss that has such",
              .value_name = "FILE|DIR"}),
      option("fine_tune", &Files::fine_tune,
             {.help = "other defaults, for weights of other data: a tenth of the rate, ten times "
                      "that for a last layer that may start anew, 10 epochs"}),
      option("replace_head", &Files::replace_head,
             {.help = "let the last layer start anew where --init has one for other classes"}),
      option("out", &Files::out,
             {.help = "folder for the model, the states to resume from, metrics.jsonl and "
                      "epochs.csv",
              .default_in_words = "runs/MODEL-N, N counting up",
              .value_name = "DIR"}),
      option(
          "save_every", &Files::save_every,
          {.help = "save the state every N steps; 0: at the end of each epoch", .range = from(0)}),
      option("resume", &Files::resume,
             {.help = "go on with the run in this folder; auto: with the one in --out, if it has a "
                      "state, else begin it",
              .value_name = "auto|DIR"}),
      option("metrics", &Files::metrics,
             {.help = "write a line of JSON for each step and epoch", .value_name = "FILE"}),
      option("tensorboard", &Files::tensorboard,
             {.help = "write event files for TensorBoard into this folder", .value_name = "DIR"}),
      option("trace", &Files::trace,
             {.help = "write a timeline (Chrome trace; open it in Perfetto); process N > 0 writes "
                      "its own, with .pN before the extension",
              .value_name = "FILE"}),
      option("trace_spans", &Files::trace_spans,
             {.help = "keep the first N spans of --trace in each process, about 110 bytes each; 0: "
                      "all",
              .range = from(0)}),
  };
}

OptionTable<TrainOptions> made_run_options() {
  OptionTable<TrainOptions> table;
  table.add(options_in(&TrainOptions::execution, execution_options()));
  table.add(options_in(&TrainOptions::files, file_options()));
  table.add(option("max_steps", &TrainOptions::max_steps,
                   {.help = "stop after N steps of the whole run; the schedule stays as planned",
                    .range = from(0),
                    .open_below_zero = true}));
  table.add(option("synthetic_train", &TrainOptions::synthetic_train,
                   {.help = "generated training images", .range = from(1)}));
  table.add(option("synthetic_test", &TrainOptions::synthetic_test,
                   {.help = "generated test images", .range = from(1)}));
  table.add(option("allow_empty_classes", &TrainOptions::allow_unseen_targets,
                   {.help = "train on a folder in which a class below the largest label has no "
                            "sample"}));
  table.add(option("skip_broken", &TrainOptions::skip_broken,
                   {.help = "decode all photographs of a folder at the start, and leave out those "
                            "that are damaged"}));
  return table;
}

}  // namespace

const OptionTable<TrainOptions>& run_options() {
  static const OptionTable<TrainOptions> table = made_run_options();
  return table;
}

void check_run_ranges(const TrainOptions& options) {
  for (const Option<TrainOptions>& row : run_options().rows()) {
    const OptionValue value = row.get(options);
    if (!row.leaves_open(value)) row.require_taken(value, row.flag_name());
  }
}

}  // namespace ringlet::train
