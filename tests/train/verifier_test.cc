// Pairs that a run is measured on while it trains (--verify): nothing that is learnt changes, all
// ranks tell the same, the best model is kept, and what a run was ended in is made up for.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/data_error.h"
#include "data/pairs.h"
#include "tests/support/files.h"
#include "tests/support/pickles.h"
#include "tests/support/pictures.h"
#include "tests/train/runs.h"
#include "tests/train/stand_in_nodes.h"
#include "train/files/centres.h"
#include "train/sync/transport_choice.h"
#include "train/telemetry/console.h"
#include "train/telemetry/metrics_reader.h"
#include "train/telemetry/run_files.h"
#include "train/telemetry/tensorboard/event_file.h"
#include "train/verify.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 28;

/// A grey picture of an identity in one of its styles.
std::string drawn(int identity, int style) {
  data::Image image = testing::gradient_image(kSide, kSide, 1);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const auto x = static_cast<int>(i % kSide), y = static_cast<int>(i / kSide);
    const int shape = (x * (identity + 2) + y * (identity % 3 + 1)) % 23 < 9 ? 160 : 20;
    image.pixels[i] = static_cast<std::uint8_t>(shape + (x * y * (style + 1)) % 60);
  }
  return testing::as_pnm(image);
}

/// What rank 0 tells.
struct Heard : RunListener {
  struct One {
    std::int64_t step;
    std::vector<Verified> sets;
    std::vector<BestVerification> best;
  };
  void verified(const VerificationReport& report) override {
    all.push_back({report.step, report.sets, report.best});
  }
  std::vector<One> all;
};

class Verifying : public ::testing::Test {
 protected:
  /// A file of pairs; every third one is of two identities.
  std::string pairs(const std::string& name, int count) const {
    std::vector<std::string> pictures;
    std::vector<bool> same;
    for (int i = 0; i < count; ++i) {
      same.push_back(i % 3 != 1);
      pictures.push_back(drawn(i, 0));
      pictures.push_back(drawn(same.back() ? i : i + 1, 1));
    }
    testing::write_file(folder_ / name, testing::pickled_pairs(pictures, same));
    return (folder_ / name).string();
  }

  /// Of `options` with these files; their model as it was saved.
  std::string model_of(TrainOptions options, const std::string& files, int every,
                       const std::vector<RunListener*>& listeners = {}) const {
    const testing::TemporaryDirectory out;
    options.files.out = out.path();
    options.recipe.verify = files;
    options.recipe.verify_every = every;
    const Outcome outcome = run(options, formula_splits(200), listeners);
    EXPECT_TRUE(outcome.result.finished);
    return testing::read_file(out / "model.safetensors") + bytes_of(outcome.state);
  }

  const testing::TemporaryDirectory folder_;
};

TEST_F(Verifying, ChangesNoBitOfWhatIsLearnt) {
  const std::string files = pairs("a.bin", 70) + "," + pairs("b.bin", 3);
  for (const bool exact : {true, false}) {
    for (const int ranks : {1, 2}) {
      SCOPED_TRACE(std::to_string(ranks) + (exact ? " exact" : ""));
      const TrainOptions options = normed(exact ? exact_options(ranks) : plain_options(ranks));
      Heard heard;
      EXPECT_EQ(model_of(options, files, 1, {&heard}), model_of(options, "", 0));
      EXPECT_EQ(heard.all.size(), 4U);
    }
  }
}

/// By this name the steps that test GPUs find it.
class CudaVerifying : public Verifying {};

TEST_F(CudaVerifying, ChangesNoBitOfCapturedSteps) {
  if (!on_stand_in()) GTEST_SKIP() << "steps are captured on the stand-in for GPUs";
  const std::string files = pairs("a.bin", 70);
  TrainOptions options = normed(plain_options(1));
  options.execution.devices = {{DeviceKind::cuda, 0}};
  options.recipe.epochs = 3;
  Heard heard;
  const NodesOfGraphs graphs = nodes_of_graphs(
      [&] { EXPECT_EQ(model_of(options, files, 2, {&heard}), model_of(options, "", 0)); });
  EXPECT_FALSE(graphs.empty());
  EXPECT_EQ(heard.all.size(), 6U);
}

TEST_F(Verifying, TellsWhatVerifyTellsOfTheModelOnAnyNumberOfRanks) {
  const std::string a = pairs("a.bin", 130), b = pairs("b.bin", 2);
  const std::string both = a + "," + b;
  std::vector<Heard> heard(3);
  for (const int ranks : {1, 2, 4}) {
    const testing::TemporaryDirectory out;
    TrainOptions options = exact_options(ranks);
    options.files.out = out.path();
    options.recipe.verify = both;
    Heard& mine = heard[static_cast<std::size_t>(ranks / 2)];
    run(options, formula_splits(100), {&mine});
    ASSERT_EQ(mine.all.size(), 1U);
    EXPECT_EQ(mine.all[0].step, 2);
    ASSERT_EQ(mine.all[0].sets.size(), 2U);
    EXPECT_EQ(mine.all[0].sets[0].name, "a");
    const std::vector<Verified>& first = heard[0].all[0].sets;
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(mine.all[0].sets[i].distances, first[i].distances);
      EXPECT_EQ(mine.all[0].sets[i].mean_length, first[i].mean_length);
    }
    const Execution execution = decided({.devices = {DeviceId{}}});
    comm::LocalGroup group = threads_of(execution);
    const fs::path file = out / "model.safetensors";
    const auto told = verify(group, execution, file, *read_model_info(file),
                             {data::open_pairs(a), data::open_pairs(b)});
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(told[i].distances.size(), first[i].distances.size());
      for (std::size_t k = 0; k < told[i].distances.size(); ++k) {
        EXPECT_NEAR(first[i].distances[k], told[i].distances[k], 1e-5);
      }
      EXPECT_NEAR(first[i].mean_length, told[i].mean_length, 1e-5 * told[i].mean_length);
    }
  }
}

TEST_F(Verifying, IsDueEverySoManyStepsAndAtTheEnd) {
  const std::string a = pairs("a.bin", 4);
  struct Case {
    int every;
    std::int64_t most;
    std::vector<std::int64_t> steps;
  };
  for (const Case& c : {Case{0, -1, {4, 8}}, Case{0, 6, {4, 6}}, Case{3, -1, {3, 6, 8}},
                        Case{4, -1, {4, 8}}, Case{100, -1, {8}}}) {
    TrainOptions options = plain_options(1);
    options.recipe.model = "mlp";
    options.recipe.epochs = 2;
    options.max_steps = c.most;
    options.recipe.verify = a;
    options.recipe.verify_every = c.every;
    Heard heard;
    run(options, formula_splits(200), {&heard});
    std::vector<std::int64_t> steps;
    for (const Heard::One& one : heard.all) steps.push_back(one.step);
    EXPECT_EQ(steps, c.steps) << c.every;
  }
}

/// The first of the steps at which the first set's accuracy is the highest, from 0.
std::size_t best_of(const Heard& heard) {
  std::size_t best = 0;
  const auto accuracy = [&](std::size_t i) { return heard.all[i].sets[0].figures.grid.mean; };
  for (std::size_t i = 0; i < heard.all.size(); ++i) {
    if (accuracy(i) > accuracy(best)) best = i;
  }
  return best;
}

/// The same pictures with other answers.
class Relabelled : public data::Pairs {
 public:
  Relabelled(std::shared_ptr<const data::Pairs> pairs, std::vector<bool> same)
      : Pairs(pairs->file(), std::move(same)), pairs_(std::move(pairs)) {}
  std::span<const std::uint8_t> picture(std::int64_t index,
                                        std::vector<std::uint8_t>& kept) const override {
    return pairs_->picture(index, kept);
  }
  std::string picture_name(std::int64_t index) const override {
    return pairs_->picture_name(index);
  }
  std::uint64_t hash() const override { return pairs_->hash(); }

 private:
  std::shared_ptr<const data::Pairs> pairs_;
};

/// Answers that suit a verification with these distances: half of the pairs are the same.
std::vector<bool> suitable(const std::vector<double>& distances) {
  std::vector<double> sorted = distances;
  std::sort(sorted.begin(), sorted.end());
  std::vector<bool> same;
  for (const double distance : distances) same.push_back(distance < sorted[sorted.size() / 2]);
  return same;
}

TEST_F(Verifying, KeepsTheModelThatIsBestOnTheFirstSet) {
  const testing::TemporaryDirectory out, shorter;
  TrainOptions options = plain_options(2);
  options.recipe.loss = "arcface";
  options.recipe.scale = 8;
  options.recipe.embedding_size = 8;
  options.recipe.model = "mlp";
  options.recipe.epochs = 3;
  options.recipe.verify = pairs("a.bin", 60) + "," + pairs("b.bin", 40);
  options.recipe.verify_every = 1;
  options.recipe.lr = 0.001;  // and normalised pixels: else embeddings come to lie all but together
  options.recipe.normalize = true;
  options.files.out = out.path();
  Heard first, heard;
  RunSetup setup = make_run_setup(options, formula_splits(200), 2);
  run(setup, {&first});
  ASSERT_EQ(first.all.size(), 12U);
  const std::shared_ptr<const data::Pairs> a = setup.verification[0].pairs;
  setup.verification[1].pairs = std::make_shared<const Relabelled>(  // the other is best at the end
      setup.verification[1].pairs, suitable(first.all[11].sets[1].distances));
  std::size_t best = 0;
  for (std::size_t wanted = 5; wanted < 11 && (best == 0 || best == 11); ++wanted) {
    heard.all.clear();
    fs::remove_all(out.path());
    fs::create_directory(out.path());
    setup.verification[0].pairs =
        std::make_shared<const Relabelled>(a, suitable(first.all[wanted].sets[0].distances));
    run(setup, {&heard});
    best = best_of(heard);
  }
  ASSERT_GT(best, 0U);
  ASSERT_LT(best, 11U);
  double highest = 0, highest_of_other = 0;
  for (const Heard::One& one : heard.all) {
    highest = std::max(highest, one.sets[0].figures.grid.mean);
    highest_of_other = std::max(highest_of_other, one.sets[1].figures.grid.mean);
    EXPECT_EQ(one.best[0].accuracy, highest);
    EXPECT_EQ(one.best[1].accuracy, highest_of_other);
  }
  const std::vector<BestVerification>& told = heard.all.back().best;
  EXPECT_EQ(told[0].step, heard.all[best].step);
  ASSERT_GT(told[1].step, told[0].step);
  EXPECT_EQ(read_state(out.path()).progress.best, told);
  options.max_steps = told[0].step;
  options.recipe.verify = "";
  options.recipe.verify_every = 0;
  options.files.out = shorter.path();
  run(options, formula_splits(200));
  for (const char* name : {"model.safetensors", "centres.safetensors"}) {
    const std::string kept = testing::read_file(out / "best" / name);
    EXPECT_TRUE(kept == testing::read_file(shorter / name)) << name;
    EXPECT_FALSE(kept == testing::read_file(out / name)) << name;
  }
}

TEST_F(Verifying, OfEqualOnesTheFirstIsTheBest) {
  TrainOptions options = plain_options(1);
  options.recipe.loss = "arcface";
  options.recipe.embedding_size = 8;
  options.recipe.model = "mlp";
  options.recipe.epochs = 1;
  options.recipe.verify = pairs("a.bin", 60);
  options.recipe.verify_every = 1;
  options.recipe.lr = 1e-12;  // no weight moves
  options.files.out = "";
  Heard heard;
  run(make_run_setup(options, formula_splits(200), 1), {&heard});
  ASSERT_GT(heard.all.size(), 1U);
  EXPECT_EQ(heard.all.front().sets[0].figures.grid.mean,
            heard.all.back().sets[0].figures.grid.mean);
  EXPECT_EQ(heard.all.back().best[0].step, heard.all.front().step);
}

/// What is a run's end here: an exception, behind which nothing is written that was not before.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

class Killer : public RunListener {
 public:
  explicit Killer(int& left) : left_(left) {}
  void epoch_done(const EpochReport&) override { count(); }
  void verified(const VerificationReport&) override { count(); }
  void saved(const std::string&) override { count(); }

 private:
  void count() {
    if (--left_ == 0) throw Killed();
  }
  int& left_;
};

RunSetup setup_of(const TrainOptions& options) {
  std::optional<SavedState> saved;
  if (fs::exists(options.files.out / "state")) saved = read_state(options.files.out);
  return make_run_setup(options, formula_splits(100),
                        static_cast<int>(options.execution.devices.size()), saved);
}

/// False where it was killed.
bool run_until(const TrainOptions& options, int kill_at) {
  const RunSetup setup = setup_of(options);
  const RunFiles files(setup);
  Killer killer(kill_at);
  std::vector<RunListener*> listeners{&killer};
  for (RunListener* file : files.listeners()) {
    listeners.push_back(file);
    listeners.push_back(&killer);
  }
  try {
    run(setup, listeners);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// All that a run leaves of its verifications.
std::vector<std::string> left_in(const fs::path& out) {
  std::vector<std::string> left;
  for (const VerificationMetrics& one : read_metrics(out / "metrics.jsonl").verifications) {
    left.push_back(one.set + " " + std::to_string(one.step) + " " + std::to_string(one.accuracy) +
                   " " + std::to_string(one.xnorm));
  }
  for (std::int64_t step = 1; step <= 2; ++step) {
    left.push_back(std::to_string(tensorboard::count_verifications(out / "events", step)));
  }
  for (const char* name :
       {"roc.csv", "distances.csv", "best/model.safetensors", "model.safetensors"}) {
    left.push_back(testing::read_file(out / name));
  }
  for (const BestVerification& best : read_state(out).progress.best) {
    left.push_back(best.set + " best " + std::to_string(best.step));
  }
  return left;
}

TEST_F(Verifying, IsToldOnceWhereverTheRunIsKilled) {
  const testing::TemporaryDirectory whole;
  TrainOptions options = plain_options(1);
  options.recipe.model = "mlp";
  options.recipe.verify = pairs("a.bin", 30) + "," + pairs("b.bin", 9);
  options.recipe.verify_every = 1;  // of two steps, of which the last is saved
  options.files.out = whole.path();
  options.files.tensorboard = whole / "events";
  ASSERT_TRUE(run_until(options, -1));
  const std::vector<std::string> expected = left_in(whole.path());
  ASSERT_EQ(expected.size(), 4U + 2U + 4U + 2U);
  for (int kill_at = 1;; ++kill_at) {
    SCOPED_TRACE("killed at call " + std::to_string(kill_at));
    const testing::TemporaryDirectory folder;
    options.files.out = folder.path();
    options.files.tensorboard = folder / "events";
    const bool ended = run_until(options, kill_at);
    ASSERT_TRUE(run_until(options, -1));
    EXPECT_EQ(left_in(folder.path()), expected);
    if (ended) break;
    ASSERT_LT(kill_at, 100);
  }
}

TEST_F(Verifying, GoesOnInAnotherFolderWithTheBestModel) {
  const testing::TemporaryDirectory first, second;
  TrainOptions options = plain_options(1);
  options.recipe.model = "mlp";
  options.recipe.verify = pairs("a.bin", 30);
  options.files.out = first.path();
  options.max_steps = 1;
  run(options, formula_splits(100));
  SavedState saved = read_state(first.path());
  saved.progress.best.at(0).accuracy = 1;  // nothing is better
  RunSetup setup = make_run_setup(options, formula_splits(100), 1, saved);
  setup.options.files.out = second.path();
  setup.last_step = 2;
  run(setup);
  EXPECT_TRUE(testing::read_file(second / "best/model.safetensors") ==
              testing::read_file(first / "best/model.safetensors"));
  EXPECT_EQ(read_state(second.path()).progress.best, saved.progress.best);
}

TEST_F(Verifying, BeginsAgainWhereARunWasStoppedInIt) {
  const testing::TemporaryDirectory whole, folder;
  TrainOptions options = plain_options(2);
  options.recipe.model = "mlp";
  options.recipe.verify = pairs("a.bin", 200);
  options.files.out = whole.path();
  Heard expected;
  run(options, formula_splits(100), {&expected});
  options.files.out = folder.path();
  // Each of two ranks asks at each of two steps, before and behind its pass of the test, and before
  // its passes of pairs.
  for (int at = 6; at <= 9; ++at) {
    SCOPED_TRACE(at);
    fs::remove_all(folder.path());
    fs::create_directory(folder.path());
    std::atomic<int> asked{0};
    RunSetup setup = setup_of(options);
    setup.stop_requested = [&] { return asked++ >= at; };
    Heard heard;
    const Outcome first = run(setup, {&heard});
    if (first.result.finished) continue;  // it was asked for no more
    EXPECT_TRUE(heard.all.empty());
    EXPECT_TRUE(read_state(folder.path()).progress.unverified);
    const Outcome rest = run(setup_of(options), {&heard});
    EXPECT_TRUE(rest.result.finished);
    EXPECT_FALSE(read_state(folder.path()).progress.unverified);
    ASSERT_EQ(heard.all.size(), 1U);
    EXPECT_EQ(heard.all[0].sets[0].distances, expected.all[0].sets[0].distances);
  }
}

/// Pairs whose pictures take their time, or cannot be read.
class StrangePairs : public data::Pairs {
 public:
  StrangePairs(std::shared_ptr<const data::Pairs> pairs, double seconds, const bool& broken)
      : Pairs(pairs->file(), pairs->same()),
        pairs_(std::move(pairs)),
        seconds_(seconds),
        broken_(broken) {}
  std::span<const std::uint8_t> picture(std::int64_t index,
                                        std::vector<std::uint8_t>& kept) const override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    if (broken_ && index == 3) throw DataError("picture 3 is broken");
    return pairs_->picture(index, kept);
  }
  std::string picture_name(std::int64_t index) const override {
    return pairs_->picture_name(index);
  }
  std::uint64_t hash() const override { return pairs_->hash(); }

 private:
  std::shared_ptr<const data::Pairs> pairs_;
  double seconds_;
  const bool& broken_;
};

TEST_F(Verifying, KeepsOthersWaitingLongerThanTheirTimeOut) {
  const bool broken = false;
  TrainOptions options = plain_options(2);
  options.recipe.model = "mlp";
  options.execution.comm_timeout = 0.7;
  options.recipe.verify = pairs("a.bin", 20);
  RunSetup setup = setup_of(options);
  setup.verification[0].pairs =
      std::make_shared<const StrangePairs>(setup.verification[0].pairs, 0.03, broken);
  Heard heard;
  const auto begin = std::chrono::steady_clock::now();
  run(setup, {&heard});  // rank 1 has no pairs: these are a pass
  EXPECT_EQ(heard.all.size(), 1U);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(Verifying, OfAPictureThatCannotBeReadEndsTheRunAndLosesNothing) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const testing::TemporaryDirectory out;
    bool broken = true;
    TrainOptions options = plain_options(ranks);
    options.recipe.model = "mlp";
    options.recipe.verify = pairs("a.bin", 20);
    options.files.out = out.path();
    const auto strange = [&](RunSetup setup) {
      setup.verification[0].pairs =
          std::make_shared<const StrangePairs>(setup.verification[0].pairs, 0, broken);
      return setup;
    };
    Heard heard;
    EXPECT_TRUE(testing::says(
        testing::message_of<Error>([&] { run(strange(setup_of(options)), {&heard}); }),
        {"picture 3 is broken; what was learnt up to step 2 is saved: once that is mended, --resume",
         "begins with this verification"}));
    EXPECT_TRUE(heard.all.empty());
    broken = false;
    EXPECT_TRUE(run(strange(setup_of(options)), {&heard}).result.finished);
    ASSERT_EQ(heard.all.size(), 1U);
    EXPECT_EQ(heard.all[0].step, 2);
  }
}

TEST_F(Verifying, SaysWhatItCannotTake) {
  const auto message = [&](const std::string& files, int every) {
    TrainOptions options = plain_options(1);
    options.recipe.verify = files;
    options.recipe.verify_every = every;
    return testing::message_of<std::exception>([&] { (void)setup_of(options); });
  };
  const std::string a = pairs("a.bin", 3);
  EXPECT_EQ(message("", 5),
            "--verify-every: is for --verify, which names the files of pairs; leave it out");
  EXPECT_EQ(message(a + ",," + a, 0), "--verify: names files with one comma between two");
  EXPECT_EQ(message(a + "," + a, 0), "--verify: names " + a + " twice; leave one out");
  EXPECT_TRUE(testing::says(message(a + "," + (folder_ / "none.bin").string(), 0), {"none.bin"}));
  testing::write_file(folder_ / "cut.bin", testing::read_file(a).substr(0, 300));
  EXPECT_TRUE(testing::says(message((folder_ / "cut.bin").string(), 0), {"cut.bin"}));
}

TEST(VerifySpec, NamesSetsApart) {
  EXPECT_EQ(names_of_sets({"data/lfw.bin", "agedb_30.bin"}),
            (std::vector<std::string>{"lfw", "agedb_30"}));
  EXPECT_EQ(names_of_sets({"x/a/pairs.txt", "x/b/pairs.txt", "lfw.bin"}),
            (std::vector<std::string>{"a/pairs", "b/pairs", "lfw"}));
  EXPECT_EQ(names_of_sets({"x/a/pairs.txt", "y/a/pairs.txt"}),
            (std::vector<std::string>{"x/a/pairs", "y/a/pairs"}));
  EXPECT_EQ(names_of_sets({"a.bin", "a.txt"}), (std::vector<std::string>{"a.bin", "a.txt"}));
}

TEST_F(Verifying, TakesACommaInTheNameOfOneFile) {
  const std::string file = pairs("a,b.bin", 3);
  EXPECT_EQ(verify_files({.verify = file}), std::vector<fs::path>{file});
  EXPECT_EQ(verify_files({.verify = "x.bin,y/pairs.txt"}),
            (std::vector<fs::path>{"x.bin", "y/pairs.txt"}));
  EXPECT_TRUE(verify_files({}).empty());
}

TEST_F(Verifying, IsShownInTheFieldsLines) {
  std::FILE* const screen = std::tmpfile();
  ASSERT_NE(screen, nullptr);
  Verified set{.name = "lfw", .figures = {.pairs = 6000}, .mean_length = 22.5};
  set.figures.grid = {0.99716667, 0.0026925824};
  const std::vector<Verified> sets{set};
  const std::vector<BestVerification> best{{"lfw", 0.998, 1000}};
  Console(screen, false).verified({.epoch = 1, .step = 2000, .sets = sets, .best = best});
  std::rewind(screen);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), screen));
  std::fclose(screen);
  EXPECT_EQ(text,
            "[lfw][2000]XNorm: 22.500000\n[lfw][2000]Accuracy-Flip: 0.99717+-0.00269\n"
            "[lfw][2000]Accuracy-Highest: 0.99800\n");
}

/// Where each rank writes its centres, it does so for the best model, too, which goes along to
/// another folder.
TEST_F(Verifying, KeepsTheBestModelsCentresInFilesOfRows) {
  const testing::TemporaryDirectory together, apart, next;
  const auto trained = [&](const fs::path& out, std::int64_t most_sent) {
    TrainOptions options = plain_options(2);
    options.recipe.loss = "arcface";
    options.recipe.embedding_size = 8;
    options.recipe.verify = pairs("some.bin", 60);
    options.recipe.verify_every = 1;
    options.max_steps = 3;
    options.files.out = out;
    options.files.most_centres_sent = most_sent;
    return options;
  };
  run(trained(together.path(), 1 << 20), formula_splits(200));
  TrainOptions options = trained(apart.path(), 0);
  run(options, formula_splits(200));
  const auto joined = [&](const fs::path& out) {
    join_centres(out / kBestFolder / kCentresFolder, folder_ / "joined");
    return testing::read_file(folder_ / "joined");
  };
  const std::string expected = testing::read_file(together / kBestFolder / kCentresFile);
  EXPECT_EQ(joined(apart.path()), expected);

  options.files.out = next.path();
  options.max_steps = 3;  // no step more
  run(make_run_setup(options, formula_splits(200), 2, read_state(apart.path())));
  EXPECT_EQ(joined(next.path()), expected);
}

}  // namespace
}  // namespace ringlet::train
