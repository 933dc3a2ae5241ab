#include <algorithm>
#include <cctype>
#include <iterator>

#include "app/cli/suggest.h"

namespace ringlet::app {

namespace {

/// A row fits where `ours` begins with a word that is known, and names no flag that is not. So a
/// word may stand in several rows: the first that fits counts.
struct Neighbour {
  std::string_view theirs;  ///< in small letters, with - for _
  std::string_view ours;
};

constexpr std::string_view kGpus = "--device cuda --replicas N";
constexpr std::string_view kNoLargeModel = "resnet18, or a model of your own (docs/library.md)";

constexpr Neighbour kNeighbours[] = {
    // Devices, threads and processes.
    {"--gpus", kGpus},
    {"--gpus", "--device cuda --ranks N"},
    {"--ngpus", kGpus},
    {"--ngpus", "--device cuda --ranks N"},
    {"--num-gpus", kGpus},
    {"--gpu", "--device cuda"},
    {"--cuda", "--device cuda"},
    {"--use-gpu", "--device cuda"},
    {"--gpu-ids", "--devices cuda:0,cuda:1"},
    {"--cpu", "--device cpu"},
    {"--no-cuda", "--device cpu"},
    {"--nthreads", "--threads N"},
    {"--nthreads", "--ranks N"},
    {"--num-threads", "--threads N"},
    {"--nproc-per-node", "--processes N"},
    {"--nproc", "--processes N"},
    {"--num-processes", "--processes N"},
    {"--np", "--processes N"},
    {"-np", "--processes N"},
    {"--world-size", "--processes N, or --replicas N in one process"},
    {"--local-rank", "--processes, without a number"},
    {"--backend", "--transport"},
    {"--dist-backend", "--transport"},
    {"--timeout", "--comm-timeout SECONDS"},
    // What is learnt, and how.
    {"--arch", "--model"},
    {"--network", "--model"},
    {"--net", "--model"},
    {"--dataset", "--data"},
    {"--data-path", "--data-dir"},
    {"--data-root", "--data-dir"},
    {"--root", "--data-dir"},
    {"--bs", "--batch-size"},
    {"--batch", "--batch-size"},
    {"--num-epochs", "--epochs"},
    {"--max-epochs", "--epochs"},
    {"--steps", "--max-steps"},
    {"--num-steps", "--max-steps"},
    {"--max-iters", "--max-steps"},
    {"--learning-rate", "--lr"},
    {"--max-lr", "--lr"},
    {"--wd", "--weight-decay"},
    {"--opt", "--optimizer"},
    {"--betas", "--beta1 and --beta2"},
    {"--norm-weight-decay", "--no-decay norm"},
    {"--clip-grad-norm", "--clip-norm"},
    {"--max-grad-norm", "--clip-norm"},
    {"--lr-warmup-epochs", "--warmup-epochs"},
    {"--lr-step-size", "--step-epochs"},
    {"--lr-gamma", "--gamma"},
    {"--lr-power", "--power"},
    {"--lr-min", "--min-lr"},
    {"--scheduler", "--schedule"},
    {"--lr-scheduler", "--schedule"},
    {"--gradient-accumulation-steps", "--accumulate"},
    {"--grad-accum", "--accumulate"},
    {"--random-seed", "--seed"},
    {"--fp16", "--precision f16"},
    {"--fp16", "--type f16"},
    {"--half", "--precision f16"},
    {"--bf16", "--precision bf16"},
    {"--bf16", "--type bf16"},
    {"--amp", "--precision f16, or bf16"},
    {"--mixed-precision", "--precision"},
    {"--sync-bn", "--batch-norm world"},
    {"--sync-batch-norm", "--batch-norm world"},
    {"--bucket-cap-mb", "--bucket-kb"},
    {"--allreduce", "--sync"},
    {"--algorithm", "--sync"},
    {"--algorithm", "--strategies"},
    // Files.
    {"--output", "--out"},
    {"--output-dir", "--out"},
    {"--save-dir", "--out"},
    {"--checkpoint-dir", "--out"},
    {"--checkpoint", "--init FILE, or --resume DIR"},
    {"--load", "--init"},
    {"--weights", "--init"},
    {"--pretrained", "--init"},
    {"--checkpoint-every", "--save-every"},
    {"--logdir", "--tensorboard"},
    {"--log-dir", "--tensorboard"},
    {"--profile", "--trace"},
    {"--timeline", "--trace"},
    // nccl-tests.
    {"--minbytes", "--begin"},
    {"--maxbytes", "--end"},
    {"--stepbytes", "--step"},
    {"--stepfactor", "--factor"},
    {"--iters", "--iterations"},
    {"--warmup-iters", "--warmup"},
    {"--datatype", "--type"},
    // Values.
    {"gpu", "cuda"},
    {"nvidia", "cuda"},
    {"resnet", "resnet18"},
    {"vgg", kNoLargeModel},
    {"alexnet", kNoLargeModel},
    {"vit", kNoLargeModel},
    {"cnn", "lenet"},
    {"mnist", "fashion-mnist, or the folder with MNIST's files"},
    {"fake", "synthetic"},
    {"random", "synthetic"},
    {"mpi", "shm, or gloo"},
    {"tcp", "gloo"},
    {"recursive-doubling", "doubling"},
    {"rabenseifner", "halving-doubling"},
    {"fp32", "f32"},
    {"float", "f32"},
    {"float32", "f32"},
    {"fp16", "f16"},
    {"half", "f16"},
    {"float16", "f16"},
    {"bfloat16", "bf16"},
    {"int32", "i32"},
    {"avg", "mean"},
};

std::string in_small_letters(std::string_view word) {
  std::string small;
  std::transform(word.begin(), word.end(), std::back_inserter(small), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return small;
}

/// "resnet50" is a resnet, and "gpu:1" a gpu.
std::string without_number(std::string word) {
  word.resize(word.find_last_not_of("0123456789:-") + 1);
  return word;
}

bool fits(std::string_view ours, const std::vector<std::string>& known) {
  for (bool first = true; !ours.empty(); first = false) {
    const std::string_view word = ours.substr(0, ours.find_first_of(" ,"));
    const bool matters = first || word.starts_with("--");
    if (matters && std::find(known.begin(), known.end(), word) == known.end()) return false;
    ours.remove_prefix(std::min(ours.size(), word.size() + 1));
  }
  return true;
}

}  // namespace

std::string ours_for(std::string_view word, const std::vector<std::string>& known) {
  const std::string whole = in_small_letters(word), base = without_number(whole);
  for (const std::string& theirs : {whole, base}) {
    for (const Neighbour& row : kNeighbours) {
      if (row.theirs == theirs && fits(row.ours, known)) return std::string(row.ours);
    }
  }
  return {};
}

}  // namespace ringlet::app
