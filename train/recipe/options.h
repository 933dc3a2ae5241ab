// TrainOptions: everything that decides what a training run does. Plain values; the command line
// and tests fill them in, state folders keep them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/all_reduce/strategies.h"
#include "data/open_dataset.h"
#include "kernels/device.h"
#include "kernels/tensor.h"
#include "nn/models/model.h"
#include "train/pipeline/schedules.h"
#include "train/recipe/best_spec.h"
#include "train/recipe/classification_spec.h"
#include "train/recipe/margin_spec.h"
#include "train/recipe/optimizer_spec.h"
#include "train/recipe/picture_spec.h"
#include "train/recipe/precision.h"
#include "train/recipe/schedule.h"
#include "train/recipe/sync_spec.h"
#include "train/recipe/verify_spec.h"

namespace ringlet::nn {
class Parameters;
}

namespace ringlet::train {

/// Whose batch it is that batch norm takes its statistics of.
enum class BatchStatistics : std::uint8_t {
  shard,  ///< of each forward pass: of a logical shard in exact mode, else of the replica's batch
  world   ///< of all replicas together
};

/// What decides the numbers: two runs that agree here (and in data) learn the same, in exact mode
/// bit for bit. Kept in state folders; a resumed run takes it from there. Each field has its row in
/// recipe_options().
struct Recipe : RateSpec,
                OptimizerSpec,
                ScheduleSpec,
                LossSpec,
                ClassificationSpec,
                PictureSpec,
                GradientSpec,
                PrecisionSpec,
                BestSpec,
                VerifySpec {
  std::string model = "lenet";
  std::string data = data::named_datasets().front().name;
  std::int64_t batch_size = 256;  ///< samples of an optimiser step over the whole world
  int epochs = 5;
  std::uint64_t seed = 1;
  bool shuffle = true;
  int accumulate = 1;  ///< micro-batches that each replica cuts its share into
  bool exact = false;
  int shards = 0;  ///< logical shards S; 0: 8 in exact mode, else one a replica
  BatchStatistics batch_norm = BatchStatistics::shard;
  double ema = 0;      ///< decay of the weights' moving average (train/optimizers/weight_average.h)
  GivenOptions own{};  ///< of a program's own rows, see own_option()

  bool operator==(const Recipe&) const = default;
};

/// The recipe that `--model NAME` stands for. Throws ContractError for a model that is not known.
Recipe default_recipe(const std::string& model);

/// Makes a model for images of this kind, its parameters without memory. All ranks must make the
/// same model. recipe.model is then only its name.
using MakeModel = std::function<std::unique_ptr<nn::Layer>(const nn::ModelInput& input)>;

class Optimizer;  // train/optimizers/optimizer.h
class Task;       // train/task/task.h

/// Makes an optimiser of these parameters. All ranks must make the same one.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(
    Device& device, const nn::Parameters& parameters, const Recipe& recipe)>;

enum class LayoutChoice : std::uint8_t { automatic, nchw, lanes, nhwc };
enum class TransportChoice : std::uint8_t { automatic, local, shm, gloo, mpi, nccl };

/// Where and how the recipe is run; none of it changes what is learnt beyond rounding.
struct Execution : BucketSpec {
  std::vector<DeviceId> devices{DeviceId{}};  ///< one a replica of this process
  bool in_processes = false;                  ///< the world is processes, this one of them
  int threads = 1;                            ///< CPU threads a replica
  int workers = -1;           ///< threads a replica that read samples; negative: see run_setup.cc
  std::string sync = "auto";  ///< strategy of all-reduce, by its name
  /// How many stages the model is cut into, or which: a number, or as nn::parse_stages() takes
  /// them.
  /// The world is then this number times the replicas, rank = stage * replicas + replica.
  std::string stages = "1";
  PipelineSchedule pipeline = PipelineSchedule::one_f_one_b;  ///< of several stages
  /// Of several stages: keep of a pass what its stage took, and run its forward again.
  bool recompute = false;
  /// What a model's parts cost where it is cut into stages: measured at the start, or planned.
  bool measures_stages = true;
  comm::Strategies strategies{};  ///< Ringlet's, and those that the program has added
  comm::StrategyTable table{};    ///< for "auto"; empty: what `ringlet tune` measured
  bool table_of_state = false;    ///< the table is that of the run that goes on: before any other
  bool probe = true;              ///< let "auto" time strategies (train/sync/strategy_pick.h)
  TransportChoice transport = TransportChoice::automatic;  ///< see choose_transport()
  bool any_transport = false;  ///< nobody named one: between machines it may be another
  LayoutChoice layout = LayoutChoice::automatic;
  /// Compare the replicas, by a hash of each, every so many steps as well; 0: never. Without it, or
  /// below 0: after the first step, at the end of each epoch and before a state is saved.
  int check_replicas = -1;
  double comm_timeout = 60;  ///< seconds
  /// CUDA: replay whole steps as captured graphs: of a single replica, and over NCCL where each has
  /// a process of its own.
  bool graph = true;
  /// Another way to say Precision::tf32. make_run_setup() lets both say so where one does.
  bool tf32 = false;
  /// Let processors compute bf16 and f16 through f32, which is slower than f32: to learn how these
  /// behave, and to test. Otherwise they are refused there.
  bool emulate_precision = false;
  bool deterministic = false;  ///< CUDA: see DeviceOptions
  bool autotune = false;       ///< CUDA: see DeviceOptions
  bool fuse = true;            ///< let neighbouring layers run as one kernel
  double hang_grace = 10;      ///< seconds that the replicas have to end after the first failure
  /// Called then with what failed and which replicas have not ended, on the thread that waits for
  /// them. Threads that hang cannot be joined, so it should end the process. If it returns, or is
  /// empty, they are waited for. Must not throw.
  std::function<void(const std::string& message)> on_hang{};
};

/// Files that a run reads and writes; an empty path means: not.
struct Files {
  std::string data_dir;
  std::filesystem::path init;  ///< a file of weights, or the folder of a run (model_file_of())
  std::filesystem::path init_centres;  ///< of a loss with a margin (train/files/centres.h)
  /// Bytes of centres up to which rank 0 writes those of all ranks; of more, each rank writes its
  /// own into `out`, which all have to see (train/files/row_files.h).
  std::int64_t most_centres_sent = std::int64_t{256} << 20;
  /// Up to which there is a file of them beside the model, too.
  std::int64_t most_centres_in_file = std::int64_t{1} << 30;
  bool fine_tune = false;     ///< with the defaults of setup/fine_tuning.h
  bool replace_head = false;  ///< init may have a last layer of another size, which starts anew
  std::filesystem::path out;
  std::filesystem::path resume;
  std::filesystem::path metrics;      ///< besides out / "metrics.jsonl"
  std::filesystem::path tensorboard;  ///< a folder
  std::filesystem::path trace;
  std::int64_t trace_spans = 500'000;  ///< the most that a process's trace has; 0: no limit
  int save_every = 0;                  ///< steps between saved states; 0: at the end of each epoch
  bool force = false;                  ///< write into a folder that holds another run
};

struct TrainOptions {
  Recipe recipe{};
  MakeModel make_model{};          ///< a model of one's own, instead of that named recipe.model
  MakeOptimizer make_optimizer{};  ///< one of one's own, instead of that named recipe.optimizer
  /// What the model is trained for; null: classification. With one of one's own the files say its
  /// name, and not what the model is: who reads them has to know.
  std::shared_ptr<const Task> task{};
  std::vector<Option<Recipe>> own_options{};  ///< the program's own rows, see recipe_options.h
  Execution execution{};
  Files files{};
  std::int64_t max_steps = -1;  ///< stop after so many steps of the whole run; -1: never
  std::int64_t synthetic_train = 60000;
  std::int64_t synthetic_test = 10000;
  bool allow_unseen_targets = false;  ///< see data::OpenOptions
  bool skip_broken = false;           ///< the same
  bool only_test = false;             ///< the same
  bool train_alone = false;           ///< the same
};

}  // namespace ringlet::train
