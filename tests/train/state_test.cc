// States on disk: what is written is read again, what is broken is named, and a process that is
// killed while it saves leaves a whole state behind.
#include "train/files/state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/byte_sum.h"
#include "base/files/aside.h"
#include "base/files/json_text.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "tests/train/runs.h"
#include "train/files/last_state.h"
#include "train/files/load_model.h"
#include "train/files/safetensors.h"
#include "train/recipe/models.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;
using testing::says;

/// A model's registry, and states whose every number is the step's.
class Model {
 public:
  explicit Model(const std::string& name = "lenet")
      : layer_(make_model(name, {})), registry_(nn::register_model(*layer_)) {}
  const nn::Registry& registry() const { return registry_; }
  HostState filled(float value) const {
    HostState state;
    state.optimizer.push_back({"velocity", {}});
    for (const nn::Parameter* p : registry_.parameters) {
      state.values.emplace_back(static_cast<std::size_t>(p->shape.count()), value);
      state.optimizer[0].tensors.emplace_back(static_cast<std::size_t>(p->shape.count()), -value);
    }
    return state;
  }
  void save(const fs::path& out, std::int64_t step,
            FormerState former = FormerState::removed) const {
    Progress progress;
    progress.step = step;
    progress.epoch_loss = 0.1 * static_cast<double>(step);
    progress.epoch_samples = 64 * step;
    save_state(out, registry_, filled(static_cast<float>(step)), info(), recipe(), progress, kHash,
               former);
  }
  static ModelInfo info() {
    return {.model = "lenet",
            .channels = 1,
            .height = 28,
            .width = 28,
            .output_names = {"hat", "shoe"}};
  }
  static Recipe recipe() {
    Recipe recipe;
    recipe.lr = 0.1 + 0.2;  // 0.30000000000000004
    recipe.seed = ~std::uint64_t{0};
    recipe.schedule = ScheduleKind::one_cycle;
    recipe.exact = true;
    recipe.grad_dtype = DType::bf16;
    return recipe;
  }
  HostState load(const fs::path& out) const {
    return load_state(read_state(out), registry_, {"velocity"});
  }
  static constexpr std::uint64_t kHash = 0xfedcba9876543210ULL;

 private:
  std::unique_ptr<nn::Layer> layer_;
  nn::Registry registry_;
};

TEST(State, IsReadAsItWasWritten) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 7);
  const SavedState saved = read_state(out.path());
  EXPECT_EQ(saved.recipe, Model::recipe());
  EXPECT_EQ(saved.progress.step, 7);
  EXPECT_EQ(saved.progress.epoch_loss, 0.1 * 7);
  EXPECT_EQ(saved.progress.epoch_samples, 64 * 7);
  EXPECT_EQ(saved.data_hash, Model::kHash);
  EXPECT_EQ(read_model_info(out / "state/model.safetensors"), Model::info());
  EXPECT_TRUE(bytes_of(model.load(out.path())) == bytes_of(model.filled(7)));
  EXPECT_EQ(read_state(out / "state").progress.step, 7);  // the folder itself may be named
}

TEST(State, KeepsTheLossScaleWhereThereIsOne) {
  const testing::TemporaryDirectory out;
  const Model model;
  const LossScaleState scale{.scale = 512, .good_steps = 17, .skips_in_row = 0, .skips = 3};
  HostState state = model.filled(7);
  state.loss_scale = scale;
  Recipe recipe = Model::recipe();
  recipe.precision = Precision::f16;
  save_state(out.path(), model.registry(), state, Model::info(), recipe, {.step = 20},
             Model::kHash);
  const SavedState saved = read_state(out.path());
  EXPECT_EQ(saved.recipe, recipe);
  EXPECT_EQ(saved.loss_scale, scale);
  EXPECT_EQ(model.load(out.path()).loss_scale, scale);
}

// As older versions wrote them, and as those that come read them: f32 has no word of either.
TEST(State, SaysNothingOfPrecisionInF32) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 7);
  const std::string json = testing::read_file(out / "state/state.json");
  EXPECT_EQ(json.find("precision"), std::string::npos);
  EXPECT_EQ(json.find("loss_scale"), std::string::npos);
  EXPECT_EQ(read_state(out.path()).recipe.precision, Precision::f32);
  EXPECT_FALSE(read_state(out.path()).loss_scale);
}

TEST(State, ALaterSaveIntoTheNamedFolderIsTheOneThatIsRead) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 3);
  model.save(out / "state", 5);  // a run that was resumed from OUT/state itself
  EXPECT_EQ(read_state(out / "state").progress.step, 5);
}

TEST(State, FilesThatAreMissingOrBrokenAreNamed) {
  const testing::TemporaryDirectory out;
  const Model model;
  const auto message = [&] {
    return testing::message_of<FileError>([&] { model.load(out.path()); });
  };
  const fs::path json = out / "state/state.json";
  EXPECT_TRUE(says(message(), {json.string(), "--out"}));

  model.save(out.path(), 7);
  const std::string whole = testing::read_file(json);
  testing::write_file(json, whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(says(message(), {json.string(), "not valid JSON"}));
  for (const char* foreign : {"{}", "[]", "7", "\"text\"", "null"}) {
    testing::write_file(json, foreign);
    EXPECT_TRUE(says(message(), {json.string(), "does not hold a state"})) << foreign;
  }
  const auto changed = [&](auto change) {
    auto document = parse_json(whole);
    change(document);
    testing::write_file(json, document.dump());
    return message();
  };
  EXPECT_TRUE(says(changed([](auto& j) { j["format"] = 99; }), {json.string(), "format 99"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["step"] = "seven"; }), {json.string()}));
  EXPECT_TRUE(says(changed([](auto& j) { j["step"] = -7; }), {json.string(), "-7"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["step"] = 1e300; }), {"'step'", "whole number"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["step"] = true; }), {"'step'", "whole number"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["epoch_samples"] = -1; }), {"-1 samples"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"]["epochs"] = 5'000'000'000; }),
                   {json.string(), "'epochs'", "too large"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"]["exact"] = 1; }), {"'exact'", "true"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"]["a\nb"] = 1; }), {"no field a\\nb"}));
  testing::write_file(json, std::string(1'000'000, '['));
  EXPECT_TRUE(says(message(), {json.string(), "nested deeper"}));
  testing::write_file(json, whole + std::string(1, '\0'));
  EXPECT_TRUE(says(message(), {json.string(), "a zero byte"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"].erase("lr"); }), {json.string(), "'lr'"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"]["colour"] = 1; }), {json.string(), "colour"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"]["grad_dtype"] = "i32"; }),
                   {json.string(), "'grad_dtype'", "f32, f16, bf16 or bf16-between"}));
  EXPECT_TRUE(says(changed([](auto& j) { j["recipe"]["schedule"] = "cosinus"; }),
                   {json.string(), "cosinus"}));
  testing::write_file(json, whole);

  for (const char* name : {"state/model.safetensors", "state/optimizer.safetensors"}) {
    const std::string bytes = testing::read_file(out / name);
    testing::write_file(out / name, bytes.substr(0, bytes.size() - 5));
    EXPECT_TRUE(says(message(), {(out / name).string()}));
    fs::remove(out / name);
    EXPECT_TRUE(says(message(), {(out / name).string()}));
    testing::write_file(out / name, bytes);
  }
  EXPECT_EQ(read_state(out.path()).progress.step, 7);
}

/// What lies in OUT, and when it was changed last.
std::map<std::string, fs::file_time_type> listing(const fs::path& out) {
  std::map<std::string, fs::file_time_type> all{{"", fs::last_write_time(out)}};
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    all[entry.path()] = entry.last_write_time();
  }
  return all;
}

TEST(State, ReadersChangeNothing) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 3);
  for (const char* name : {"state.tmp.999999999", "state.old.20251124"}) {
    fs::create_directory(out / name);  // of a living writer in another container; a user's own
  }
  for (const char* suffix : {"tmp", "old"}) {
    fs::create_directory(posix::aside_of(out / "state", suffix));
  }
  const auto before = listing(out.path());
  EXPECT_EQ(read_state(out.path()).progress.step, 3);
  EXPECT_EQ(find_last_state(out.path())->state.progress.step, 3);
  EXPECT_TRUE(bytes_of(model.load(out.path())) == bytes_of(model.filled(3)));
  EXPECT_EQ(listing(out.path()), before);
}

TEST(State, IsReadWhereAWriterHasMovedItForAMoment) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 3);
  const fs::path moved = posix::aside_of(out / "state", "old");
  fs::rename(out / "state", moved);
  EXPECT_EQ(read_state(out.path()).folder, moved);
  EXPECT_EQ(find_last_state(out.path())->warning, "");
  EXPECT_TRUE(bytes_of(model.load(out.path())) == bytes_of(model.filled(3)));
  EXPECT_TRUE(fs::exists(moved));
}

/// The bytes of a file, changed by `change`.
template <class Change>
void change_file(const fs::path& file, Change change) {
  std::string bytes = testing::read_file(file);
  change(bytes);
  testing::write_file(file, bytes);
}

TEST(State, DamageOfAnyKindIsFound) {
  const testing::TemporaryDirectory out, other;
  const Model model;
  const auto message = [&] {
    return testing::message_of<FileError>([&] { model.load(out.path()); });
  };
  model.save(other.path(), 7);
  const auto flip = [](std::string& bytes) { bytes[bytes.size() / 2] ^= 4; };
  const auto clear = [](std::string& bytes) {
    std::fill(bytes.end() - 400'000, bytes.end(), '\0');
  };
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const fs::path file = out / "state" / name;
    model.save(out.path(), 5);
    change_file(file, flip);
    EXPECT_TRUE(says(message(), {file.string(), "is not the file that was saved", "is damaged"}));
    model.save(out.path(), 5);
    change_file(file, clear);
    EXPECT_TRUE(says(message(), {file.string(), "is not the file that was saved"}));
    model.save(out.path(), 5);
    fs::copy(other / "state" / name, file, fs::copy_options::overwrite_existing);  // another step's
    EXPECT_TRUE(says(message(), {file.string(), "another state's"}));
  }
  const fs::path json = out / "state/state.json";
  model.save(out.path(), 5);
  change_file(json,
              [](std::string& text) { text.replace(text.find("\"step\": 5"), 9, "\"step\": 4"); });
  EXPECT_TRUE(says(message(), {json.string(), "is not as it was written"}));
  fs::copy(other / "state/state.json", json, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(says(message(), {"model.safetensors is not the file that was saved"}));
}

TEST(State, ItsModelByItselfIsTheOneThatWasSavedToo) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 5);
  const fs::path file = out / "state/model.safetensors", copy = out / "model.safetensors";
  EXPECT_NO_THROW(load_model(file, model.registry()));
  change_file(file, [](std::string& bytes) { bytes[bytes.size() / 2] ^= 4; });
  const auto message = testing::message_of<FileError>([&] { load_model(file, model.registry()); });
  EXPECT_TRUE(says(message, {file.string(), "is not the file that was saved", "is damaged"}));
  fs::copy(file, copy);  // a user's own, of which no sum is known
  EXPECT_NO_THROW(load_model(copy, model.registry()));
  testing::write_file(out / "state.json", "{\"of\": \"somebody else\"}");
  EXPECT_NO_THROW(load_model(copy, model.registry()));
}

/// As versions without sums wrote it.
void take_sums_out(const fs::path& json) {
  auto document = parse_json(testing::read_file(json));
  EXPECT_EQ(document.erase("sums"), 1U);
  testing::write_file(json, document.dump(2) + "\n");
}

TEST(State, WithoutSumsIsReadAsBefore) {
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 5);
  const fs::path json = out / "state/state.json";
  const auto written = parse_json(testing::read_file(json));
  EXPECT_EQ(written["sums"].size(), 3U);
  testing::write_file(json, written.dump());  // other blanks are no damage
  EXPECT_TRUE(bytes_of(model.load(out.path())) == bytes_of(model.filled(5)));
  take_sums_out(json);
  change_file(json,
              [](std::string& text) { text.replace(text.find("\"step\": 5"), 9, "\"step\": 4"); });
  EXPECT_EQ(read_state(out.path()).progress.step, 4);
  EXPECT_TRUE(bytes_of(model.load(out.path())) == bytes_of(model.filled(5)));
}

TEST(ByteSum, IsTheSameHoweverTheBytesAreCut) {
  std::string bytes(200'000, '\0');
  std::mt19937 random(1);
  for (char& byte : bytes) byte = static_cast<char>(random());
  const auto sum_in_pieces = [&](std::size_t piece) {
    ByteSum sum;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      sum.add(bytes.data() + at, std::min(piece, bytes.size() - at));
    }
    return sum.finish();
  };
  const std::string whole = sum_in_pieces(bytes.size());
  EXPECT_EQ(whole.size(), 16U);
  for (const std::size_t piece : {1, 7, 4096, 65'536, 65'537}) {
    EXPECT_EQ(sum_in_pieces(piece), whole) << piece;
  }
  for (const std::size_t at : {0, 1, 65'535, 65'536, 199'999}) {
    bytes[at] ^= 1;
    EXPECT_NE(sum_in_pieces(bytes.size()), whole) << at;
    bytes[at] ^= 1;
  }
  bytes.push_back('\0');
  EXPECT_NE(sum_in_pieces(bytes.size()), whole);
  // States on disk keep it.
  ByteSum fixed;
  fixed.add("ringlet", 7);
  EXPECT_EQ(fixed.finish(), "70489b59b8d15469");
}

TEST(State, AnotherModelsIsRefused) {
  const testing::TemporaryDirectory out;
  Model("mlp").save(out.path(), 7);
  const Model lenet;
  EXPECT_TRUE(says(testing::message_of<FileError>([&] { lenet.load(out.path()); }),
                   {"model.safetensors", "conv1.weight", "fc3.bias"}));
}

TEST(State, AHeadForOtherClassesIsNamedOrReplaced) {
  const auto seven = make_model("lenet", {.outputs = 7});
  const nn::Registry registry = nn::register_model(*seven);
  const std::string file = testing::testdata("oracle/init.safetensors");
  EXPECT_TRUE(says(testing::message_of<FileError>([&] { load_model(file, registry); }),
                   {"init.safetensors", "fc2", "10 classes", "has 7", "--replace-head"}));
  const HostState taken = load_model(file, registry, Head::replaced);
  const auto whole = make_model("lenet", {});
  const HostState all = load_model(file, nn::register_model(*whole));
  for (std::size_t i = 0; i < taken.values.size(); ++i) {
    const bool head = registry.parameters[i]->name.starts_with("fc2.");
    EXPECT_EQ(taken.values[i], head ? std::vector<float>{} : all.values[i]);
  }
  const auto other = make_model("mlp", {.outputs = 7});  // no head makes up for another model
  const nn::Registry of_mlp = nn::register_model(*other);
  EXPECT_TRUE(
      says(testing::message_of<FileError>([&] { load_model(file, of_mlp, Head::replaced); }),
           {"does not fit", "fc3.bias", "conv1.weight"}));
}

TEST(State, PyTorchsFilesAreTaken) {
  const Model model;
  const std::string file = testing::testdata("oracle/init.safetensors");
  const HostState plain = load_model(file, model.registry());
  ASSERT_EQ(plain.values.size(), 8u);
  EXPECT_EQ(model.registry().parameters[0]->name, "conv1.weight");

  const testing::TemporaryDirectory folder;  // as a wrapped model writes it
  const SafetensorsFile original(file);
  std::vector<TensorToWrite> tensors;
  for (const auto& entry : original.entries()) {
    tensors.push_back({entry.spec, entry.bytes.data()});
    tensors.back().spec.name = "module." + entry.spec.name;
  }
  write_safetensors(folder / "wrapped.safetensors", tensors);
  EXPECT_TRUE(bytes_of(load_model(folder / "wrapped.safetensors", model.registry())) ==
              bytes_of(plain));

  for (TensorToWrite& tensor : tensors) tensor.spec.name = "_orig_mod." + tensor.spec.name;
  write_safetensors(folder / "compiled.safetensors", tensors);
  EXPECT_TRUE(bytes_of(load_model(folder / "compiled.safetensors", model.registry())) ==
              bytes_of(plain));

  HostState weights = plain;  // and written again it is the same, in names and shapes
  save_model(folder / "again.safetensors", model.registry(), weights, Model::info());
  const SafetensorsFile again(folder / "again.safetensors");
  ASSERT_EQ(again.entries().size(), original.entries().size());
  for (const auto& entry : original.entries()) {
    const auto mine = again.f32(entry.spec.name), theirs = original.f32(entry.spec.name);
    EXPECT_TRUE(std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end()));
  }
  EXPECT_EQ(again.metadata().at("format"), "pt");
  EXPECT_EQ(read_model_info(folder / "again.safetensors"), Model::info());
}

/// OUT with the states after steps 3 and 5.
class TwoStates : public ::testing::Test {
 protected:
  TwoStates() {
    model_.save(out_.path(), 3);
    model_.save(out_.path(), 5, FormerState::kept);
  }
  void damage(const std::string& file) const {
    const std::string bytes = testing::read_file(out_ / file);
    testing::write_file(out_ / file, bytes.substr(0, bytes.size() / 2));
  }
  testing::TemporaryDirectory out_;
  Model model_;
};

TEST_F(TwoStates, AreTheLastOneAndTheOneBefore) {
  EXPECT_EQ(read_state(out_.path()).progress.step, 5);
  EXPECT_EQ(read_state(out_ / "state.before").progress.step, 3);
  model_.save(out_.path(), 7, FormerState::kept);
  EXPECT_EQ(read_state(out_ / "state.before").progress.step, 5);
  model_.save(out_.path(), 9);  // of another run
  EXPECT_FALSE(fs::exists(out_ / "state.before"));
  EXPECT_EQ(std::distance(fs::directory_iterator(out_.path()), fs::directory_iterator()), 1);
}

TEST_F(TwoStates, GiveTheLastThatIsWhole) {
  const auto found = find_last_state(out_.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.progress.step, 5);
  EXPECT_EQ(found->warning, "");
  for (const char* file : {"state.json", "model.safetensors", "optimizer.safetensors"}) {
    damage(std::string("state/") + file);
    auto before = find_last_state(out_.path());
    ASSERT_TRUE(before);
    EXPECT_EQ(before->state.progress.step, 3);
    EXPECT_TRUE(says(before->warning, {file, "the state before that, after step 3"}));
    restore(*before, out_.path());
    EXPECT_EQ(before->state.folder, out_ / "state");
    EXPECT_TRUE(bytes_of(model_.load(out_.path())) == bytes_of(model_.filled(3)));
    EXPECT_TRUE(fs::exists(out_ / "state.broken" / file));
    EXPECT_FALSE(fs::exists(out_ / "state.before"));
    model_.save(out_.path(), 5, FormerState::kept);
  }
}

// Such a state may come from an earlier version: this one saves none.
TEST_F(TwoStates, GiveTheLastThatIsFinite) {
  HostState diverged = model_.filled(7);
  diverged.optimizer[0].tensors[2][3] = std::numeric_limits<float>::quiet_NaN();
  save_state(out_.path(), model_.registry(), diverged, Model::info(), Model::recipe(), {.step = 7},
             Model::kHash, FormerState::kept);
  const auto found = find_last_state(out_.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.progress.step, 5);
  EXPECT_TRUE(says(found->warning, {"optimizer.safetensors", "has nan at", "after step 5"}));
}

TEST_F(TwoStates, GiveTheOneBeforeWhereABitHasFlipped) {
  for (const char* file : {"state.json", "model.safetensors", "optimizer.safetensors"}) {
    change_file(out_ / "state" / file, [](std::string& bytes) { bytes[bytes.size() - 20] ^= 1; });
    const auto before = find_last_state(out_.path());
    ASSERT_TRUE(before);
    EXPECT_EQ(before->state.progress.step, 3);
    EXPECT_TRUE(says(before->warning, {file, "the state before that, after step 3"}));
    model_.save(out_.path(), 3);
    model_.save(out_.path(), 5, FormerState::kept);
  }
}

TEST_F(TwoStates, GiveNothingWhereNoneIsWhole) {
  damage("state.before/state.json");
  damage("state/optimizer.safetensors");
  EXPECT_TRUE(says(testing::message_of<FileError>([&] { find_last_state(out_.path()); }),
                   {"state/optimizer.safetensors", "remove " + (out_ / "state").string()}));
  fs::remove_all(out_ / "state");
  EXPECT_TRUE(says(testing::message_of<FileError>([&] { find_last_state(out_.path()); }),
                   {"state is not there"}));
  fs::remove_all(out_ / "state.before");
  EXPECT_FALSE(find_last_state(out_.path()));
  EXPECT_FALSE(find_last_state(out_ / "nowhere"));
}

TEST_F(TwoStates, GiveTheOneBeforeWhereTheLastWasPutAside) {
  auto found = find_last_state(out_.path());
  fs::rename(out_ / "state", out_ / "state.broken");  // and then the process was killed
  found = find_last_state(out_.path());
  ASSERT_TRUE(found);
  restore(*found, out_.path());
  EXPECT_EQ(read_state(out_.path()).progress.step, 3);
}

/// Saves state after state until it is killed. Says in the pipe which was the last one finished.
[[noreturn]] void save_forever(const Model& model, const fs::path& out, int pipe) {
  try {
    for (std::int32_t step = 1;; ++step) {
      model.save(out, step);
      if (::write(pipe, &step, sizeof step) != sizeof step) _exit(2);
    }
  } catch (...) {
    _exit(1);
  }
}

TEST(State, AKilledProcessLeavesAWholeOne) {
  constexpr int kKills = 50;
  const testing::TemporaryDirectory out;
  const Model model;
  model.save(out.path(), 0);
  std::mt19937 random(1);
  std::vector<std::int64_t> seen;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_forever(model, out.path(), pipe[1]);
    ::close(pipe[1]);
    std::int32_t finished = 0;
    ASSERT_EQ(::read(pipe[0], &finished, sizeof finished), static_cast<ssize_t>(sizeof finished));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
    while (::read(pipe[0], &finished, sizeof finished) > 0) {
    }
    ::close(pipe[0]);

    const SavedState saved = read_state(out.path());
    EXPECT_GE(saved.progress.step, finished);
    EXPECT_LE(saved.progress.step, finished + 1);
    const HostState expected = model.filled(static_cast<float>(saved.progress.step));
    EXPECT_TRUE(bytes_of(model.load(out.path())) == bytes_of(expected));
  }
  model.save(out.path(), 0);
  int left = 0;  // the next writer has removed every aside
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(out.path())) ++left;
  EXPECT_EQ(left, 1);
}

}  // namespace
}  // namespace ringlet::train
