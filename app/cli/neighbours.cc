#include <algorithm>
#include <cctype>
#include <iterator>

#include "app/cli/suggest.h"

namespace ringlet::app {

namespace {

/// A row fits where `ours` begins with a word that is known, and names no flag that is not. So a
/// word may stand in several rows: the first that fits counts.
struct Neighbour {
  std::string_view ours;
  std::string_view theirs;  ///< words in small letters, with - for _
};

constexpr std::string_view kGpus = "--device cuda --replicas N";
constexpr std::string_view kNoLargeModel = "resnet18, or a model of your own (docs/library.md)";

constexpr Neighbour kNeighbours[] = {
    // Devices, threads and processes.
    {kGpus, "--gpus --ngpus --num-gpus"},
    {"--device cuda --ranks N", "--gpus --ngpus"},
    {"--device cuda", "--gpu --cuda --use-gpu"},
    {"--devices cuda:0,cuda:1", "--gpu-ids"},
    {"--device cpu", "--cpu --no-cuda"},
    {"--threads N", "--nthreads --num-threads"},
    {"--ranks N", "--nthreads"},
    {"--processes N", "--nproc-per-node --nproc --num-processes --np -np"},
    {"--processes N, or --replicas N in one process", "--world-size"},
    {"--processes, without a number", "--local-rank"},
    {"--transport", "--backend --dist-backend"},
    {"--comm-timeout SECONDS", "--timeout"},
    // What is learnt, and how.
    {"--model", "--arch --network --net -a"},
    {"--data", "--dataset"},
    {"--data FOLDER", "--data-path --data-root --root --folder --train-dir --image-folder"},
    {"--data-dir", "--data-path --data-root --root"},
    {"--batch-size", "--bs --batch -b"},
    {"--epochs", "--num-epochs --max-epochs"},
    {"--max-steps", "--steps --num-steps --max-iters"},
    {"--lr", "--learning-rate --max-lr"},
    {"--weight-decay", "--wd"},
    {"--optimizer", "--opt"},
    {"--beta1 and --beta2", "--betas"},
    {"--no-decay norm", "--norm-weight-decay"},
    {"--clip-norm", "--clip-grad-norm --max-grad-norm"},
    {"--warmup-epochs", "--lr-warmup-epochs"},
    {"--step-epochs", "--lr-step-size"},
    {"--gamma", "--lr-gamma"},
    {"--power", "--lr-power"},
    {"--min-lr", "--lr-min"},
    {"--schedule", "--scheduler --lr-scheduler"},
    {"--accumulate", "--gradient-accumulation-steps --grad-accum"},
    {"--seed", "--random-seed"},
    {"--precision f16", "--fp16 --half"},
    {"--type f16", "--fp16"},
    {"--precision bf16", "--bf16"},
    {"--type bf16", "--bf16"},
    {"--precision f16, or bf16", "--amp"},
    {"--precision", "--mixed-precision"},
    {"--batch-norm world", "--sync-bn --sync-batch-norm"},
    {"--bucket-kb", "--bucket-cap-mb"},
    {"--sync", "--allreduce --algorithm"},
    {"--strategies", "--algorithm"},
    {"--accumulate", "--accumulate-grad-batches"},
    {"--clip-norm", "--gradient-clip-val --grad-clip"},
    {"--label-smoothing", "--smoothing"},
    {"--label-smoothing, --weight-decay or --augment",
     "--dropout --drop --drop-rate --drop-path --mixup --cutmix --random-erase --reprob"},
    {"--seeds 1,2,3", "--trials --repeats --num-seeds"},
    {"--sweep lr=0.05,0.1", "--grid --search --lr-find"},
    {"--ema", "--model-ema --ema-decay --model-ema-decay"},
    {"--patience", "--early-stopping --early-stop --early-stopping-patience"},
    {"--freeze all-but-head",
     "--freeze-backbone --freeze-encoder --freeze-features --linear-probe"},
    {"--head-lr", "--lr-head --fc-lr --classifier-lr"},
    // Photographs.
    {"--image-size", "--img-size --imgsz --img --input-size --crop-size --train-crop-size"},
    {"--image-size", "--resolution"},
    {"--augment", "--aug --augmentation --augmentations --auto-augment --aa --transform"},
    {"--split", "--val-split --validation-split --val-size --test-split --test-size --split-ratio"},
    {"--workers", "--num-workers -j"},
    // Files.
    {"--out", "--output --output-dir --save-dir --checkpoint-dir --name --project --experiment"},
    {"--out", "--run-name --exp-name"},
    {"--checkpoint", "--ckpt-path --ckpt --model-path"},
    {"--init FILE, or --resume DIR", "--checkpoint --ckpt-path --ckpt --resume-from-checkpoint"},
    {"--init", "--load --weights --pretrained"},
    {"--save-every", "--checkpoint-every"},
    {"--tensorboard", "--logdir --log-dir"},
    {"--tensorboard, or OUT/metrics.jsonl", "--wandb --logger --mlflow --comet --neptune"},
    {"--trace", "--profile --timeline"},
    // nccl-tests.
    {"--begin", "--minbytes"},
    {"--end", "--maxbytes"},
    {"--step", "--stepbytes"},
    {"--factor", "--stepfactor"},
    {"--iterations", "--iters"},
    {"--warmup", "--warmup-iters"},
    {"--type", "--datatype"},
    {"--ranks N --device cuda", "-g"},
    {"--ranks N", "-t"},
    {"--root", "-r"},
    // Commands.
    {"train", "fit finetune fine-tune learn"},
    {"eval", "test validate evaluate score"},
    {"predict", "infer inference classify"},
    {"report", "plot show"},
    // Values.
    {"cuda", "gpu nvidia"},
    {"resnet18", "resnet"},
    {kNoLargeModel, "vgg alexnet vit"},
    {"lenet", "cnn"},
    {"fashion-mnist, or the folder with MNIST's files", "mnist"},
    {"synthetic", "fake random"},
    {"shm, or gloo", "mpi"},
    {"gloo", "tcp"},
    {"doubling", "recursive-doubling"},
    {"halving-doubling", "rabenseifner"},
    {"f32", "fp32 float float32 32-true"},
    {"f16", "fp16 half float16 16-mixed 16-true"},
    {"bf16", "bfloat16 bf16-mixed bf16-true"},
    {"random-resized-crop", "rrc randomresizedcrop inception"},
    {"crop-flip", "randomcrop pad-crop cifar"},
    {"flip", "hflip horizontal-flip"},
    {"one-cycle", "onecycle onecyclelr"},
    {"cosine", "cosineannealing cosineannealinglr"},
    {"i32", "int32"},
    {"mean", "avg"},
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

bool has_word(std::string_view words, const std::string& word) {
  return (" " + std::string(words) + " ").find(" " + word + " ") != std::string::npos;
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
      if (has_word(row.theirs, theirs) && fits(row.ours, known)) return std::string(row.ours);
    }
  }
  return {};
}

}  // namespace ringlet::app
