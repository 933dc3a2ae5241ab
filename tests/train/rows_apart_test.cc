// States of so many centres that each rank writes its own: any number of ranks goes on from them.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "kernels/host_copy.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/margin_trial.h"
#include "tests/train/runs.h"
#include "train/files/centres.h"
#include "train/files/last_state.h"
#include "train/files/load_model.h"
#include "train/files/row_files.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;

enum class RowsCase { sgd, adamw, sampled, averaged };

/// Of these ranks; each writes its own centres where `apart`.
Trial trial_of(TrainOptions options, RowsCase which, bool apart) {
  Trial made(std::move(options));
  Recipe& recipe = made.options.recipe;
  recipe.optimizer = which == RowsCase::sgd ? "sgd" : "adamw";
  recipe.ema = which == RowsCase::averaged ? 0.7 : 0;
  recipe.momentum = which == RowsCase::sgd ? 0.9 : 0;
  recipe.nesterov = recipe.nesterov && which == RowsCase::sgd;
  recipe.weight_decay = 0.01;
  if (which == RowsCase::sampled) {
    recipe.sample_rate = 0.3;
    recipe.batch_size = 12;
  }
  if (apart) made.options.files.most_centres_sent = 0;
  return made;
}

/// Stops after four of nine steps.
void begin_run(Trial trial, const fs::path& out) {
  trial.options.files.out = out;
  trial.options.max_steps = 4;
  trial.to_the_end();
}

std::vector<double> go_on(Trial trial, int ranks, const fs::path& out) {
  trial.options.files.out = out;
  return run(make_run_setup(trial.options, trial.data, ranks, read_state(out))).losses();
}

TEST(RowsApart, GoOnBitForBitOnAnyNumberOfRanksInExactMode) {
  for (const RowsCase which :
       {RowsCase::sgd, RowsCase::adamw, RowsCase::sampled, RowsCase::averaged}) {
    const std::string whole = files_of(trial_of(exact_options(1), which, false));
    for (const int ranks : {1, 2, 8}) {
      for (const bool apart : {true, false}) {
        const testing::TemporaryDirectory folder;
        begin_run(trial_of(exact_options(4), which, true), folder.path());
        EXPECT_FALSE(fs::exists(folder / "state" / kCentresFile));
        EXPECT_TRUE(fs::exists(folder / "state" / kCentresFolder / row_file_name(3, 4)));
        go_on(trial_of(exact_options(ranks), which, apart), ranks, folder.path());
        EXPECT_TRUE(files_of(folder.path()) == whole) << ranks << " ranks";
        EXPECT_EQ(fs::exists(folder / "state" / kCentresFile), !apart);
      }
    }
  }
}

TEST(RowsApart, GoOnOnAnyNumberOfRanks) {
  for (const RowsCase which : {RowsCase::sgd, RowsCase::sampled}) {
    const std::vector<double> losses =
        trial_of(plain_options(1), which, false).to_the_end().losses();
    for (const int ranks : {1, 2, 3, 8}) {
      const testing::TemporaryDirectory folder;
      begin_run(trial_of(plain_options(4), which, true), folder.path());
      expect_losses_near(go_on(trial_of(plain_options(ranks), which, true), ranks, folder.path()),
                         {losses.begin() + 4, losses.end()}, 2e-5);
    }
  }
}

TEST(RowsApart, AreWrittenByProcesses) {
  const std::string whole = files_of(trial_of(exact_options(4), RowsCase::adamw, false));
  const testing::TemporaryDirectory folder;
  comm::Processes processes({2, 2});
  comm::run_ranks(2, [&](int process) {
    Trial two = trial_of(exact_options(2), RowsCase::adamw, true);
    two.options.execution.in_processes = true;
    two.options.execution.transport = TransportChoice::shm;
    two.options.files.out = folder.path();
    train(processes.group(process), make_run_setup(two.options, two.data, 4), {});
  });
  EXPECT_TRUE(files_of(folder.path()) == whole);
}

/// There is no file beside the model: its centres are those of the state.
TEST(RowsApart, AreReadByWhoReadsCentres) {
  const testing::TemporaryDirectory folder, next;
  Trial two = trial_of(plain_options(2), RowsCase::sgd, true);
  two.options.files.out = folder.path();
  two.options.files.most_centres_in_file = 0;
  testing::write_file(folder / kCentresFile, "a former run's");
  const Outcome outcome = two.to_the_end();
  EXPECT_FALSE(fs::exists(folder / kCentresFile));
  const fs::path centres = folder / "state" / kCentresFolder;
  EXPECT_EQ(centres_file_of(folder.path()), centres);
  EXPECT_EQ(centres_beside(folder / kModelFile), centres);
  EXPECT_EQ(read_centres_info(centres).names[9], "class 9");

  Trial alone(plain_options(1));
  alone.options.files.init_centres = centres;
  const Evaluation measured =
      evaluate(make_run_setup(alone.options, alone.data, 1), folder / kModelFile);
  EXPECT_NEAR(measured.loss, outcome.result.test.loss, 1e-6);

  Trial from(plain_options(3));
  from.options.files.init = folder.path();
  from.options.files.init_centres = folder.path();
  from.options.max_steps = 0;
  from.options.files.out = next.path();
  from.to_the_end();
  EXPECT_EQ(centres_in(next.path()), RowFiles(centres).weights());
}

class RowsApartBroken : public ::testing::Test {
 protected:
  void SetUp() override {
    begin_run(trial_of(plain_options(3), RowsCase::adamw, true), folder_.path());
  }

  fs::path file(int index) const {
    return folder_ / "state" / kCentresFolder / row_file_name(index, 3);
  }
  std::string message() {
    return testing::message_of<FileError>([&] {
      const SavedState saved = read_state(folder_.path());
      require_whole(saved);
      go_on(trial_of(plain_options(2), RowsCase::adamw, true), 2, folder_.path());
    });
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(RowsApartBroken, AMissingFileIsNamed) {
  fs::remove(file(1));
  EXPECT_TRUE(testing::says(message(), {file(1).string()}));
  fs::remove_all(file(1).parent_path());
  EXPECT_TRUE(testing::says(message(), {kCentresFolder}));
}

TEST_F(RowsApartBroken, AFileOfOtherRowsIsNamed) {
  fs::copy_file(file(0), file(2), fs::copy_options::overwrite_existing);
  EXPECT_TRUE(testing::says(message(), {file(2).string(), "is not the file that was saved"}));
  const std::string of_reader =
      testing::message_of<FileError>([&] { RowFiles files(file(0).parent_path()); });
  EXPECT_TRUE(testing::says(of_reader, {file(2).string(), "begins at row 0", "ends at 7"}))
      << of_reader;
}

TEST_F(RowsApartBroken, ACutFileIsNamed) {
  fs::resize_file(file(0), fs::file_size(file(0)) - 4);
  EXPECT_TRUE(testing::says(message(), {file(0).string()}));
}

TEST_F(RowsApartBroken, AnotherOptimisersAreRefused) {
  const RowFiles files(file(0).parent_path());
  const std::string other = testing::message_of<FileError>([&] {
    files.match(10, kSize, {"weight", "velocity"}, {});
  });
  EXPECT_TRUE(testing::says(other, {"optimiser keeps"})) << other;
  const std::string classes = testing::message_of<FileError>([&] {
    files.match(11, kSize, {"weight", "exp_avg", "exp_avg_sq"}, {});
  });
  EXPECT_TRUE(testing::says(classes, {"10 rows of 6", "11 of 6"})) << classes;
}

/// A row that no step has, so that no loss tells of it.
TEST(RowsApart, ABrokenRowIsNamedAndTheStateBeforeStays) {
  const testing::TemporaryDirectory folder;
  const auto trial = [&](double rate) {
    Trial made(plain_options(3), 1003);
    made.options.recipe.sample_rate = rate;
    made.options.recipe.batch_size = 12;
    made.options.files.most_centres_sent = 0;
    made.options.files.out = folder.path();
    return made;
  };
  Trial first = trial(0.01);
  first.options.max_steps = 1;
  first.to_the_end();
  const fs::path file = folder / "state" / kCentresFolder / row_file_name(2, 3);
  const std::string before = testing::read_file(file);
  const Trial rest = trial(0.01);
  const RunSetup setup = make_run_setup(rest.options, rest.data, 3, read_state(folder.path()));
  const std::string message = testing::message_of<Error>([&] {
    run(setup, {}, [](TrainLoop& loop, Device& device, int rank) {
      for (const auto* p : loop.replica().parameters().registry().parameters) {
        if (rank != 1 || !p->of_loss) continue;
        const float broken = std::numeric_limits<float>::infinity();
        const View flat = p->value.reshaped({p->value.count()});
        copy_from_host(device.compute(), &broken, flat.slice(flat.count() - 1, flat.count()));
      }
    });
  });
  EXPECT_TRUE(testing::says(message, {"not finite in the weight of the centres", "in row 668"}))
      << message;
  EXPECT_EQ(testing::read_file(file), before);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace ringlet::train
