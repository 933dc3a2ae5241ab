// learn_train LIBRARY: trains LeNet on generated images with two replicas. Their gradients are
// summed by the learner's strategy of that library, which check_file has compiled, and once more by
// the product's ring.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "comm/all_reduce/strategies.h"
#include "data/synthetic.h"
#include "learn/renamed.h"
#include "train/trainer.h"

using namespace ringlet;

namespace {

constexpr const char* kOwn = "your ring";
constexpr int kReplicas = 2, kEpochs = 3;

comm::Strategy learners_strategy(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW);
  using Tell = void(comm::Strategy&);
  auto* const tell =
      handle == nullptr ? nullptr : reinterpret_cast<Tell*>(dlsym(handle, "learners_strategy"));
  if (tell == nullptr) throw std::runtime_error(dlerror());
  comm::Strategy strategy{};
  tell(strategy);
  return learn::renamed(strategy, kOwn);
}

/// An epoch a line.
class Table : public train::RunListener {
 public:
  void epoch_done(const train::EpochReport& report) override {
    std::printf("  epoch %lld   train loss %.4f   test accuracy %5.2f %%   %.1f s\n",
                static_cast<long long>(report.epoch), report.train_loss,
                100 * report.test.accuracy(), report.seconds);
    std::fflush(stdout);
    loss = report.train_loss;
  }
  double loss = 0;
};

/// Returns the last epoch's loss.
double train_by(const std::string& sync, const comm::Strategies& strategies,
                const data::Splits& images) {
  std::printf("LeNet, %d replicas, gradients summed by %s\n", kReplicas, sync.c_str());
  train::TrainOptions options{.recipe = train::default_recipe("lenet")};
  options.recipe.epochs = kEpochs;
  options.recipe.data = data::kSyntheticName;
  options.execution.devices.resize(kReplicas);
  options.execution.strategies = strategies;
  options.execution.sync = sync;
  Table table;
  train::RunListener* listeners[] = {&table};
  train::train(make_run_setup(options, images, kReplicas), listeners);
  return table.loss;
}

int run(const std::string& library) {
  constexpr double kNear = 1e-3;
  comm::Strategies strategies;
  strategies.add(learners_strategy(library));
  const data::Splits images = data::make_synthetic({.train = 8000, .test = 1000});
  const double own = train_by(kOwn, strategies, images);
  const double product = train_by("ring", strategies, images);
  const bool same = std::abs(own - product) < kNear;
  std::printf("%s\n", same ? "The two learn the same." : "The two do not learn the same.");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "learn_train: LIBRARY\n"), 2;
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "learn_train: %s\n", error.what()), 2;
  }
}
