#include "data/fashion_mnist.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <optional>

#include "base/data_error.h"
#include "base/sha256.h"
#include "data/idx_dataset.h"
#include "data/memory_dataset.h"
#include "data/open_dataset.h"
#include "tests/data/idx_files.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

using testing::message_of;
using testing::says;

// NOLINTBEGIN(concurrency-mt-unsafe): the tests' one thread reads and writes the environment.

const char* variable(const char* name) { return getenv(name); }

/// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = variable(name)) old_ = old;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// NOLINTEND(concurrency-mt-unsafe)

TEST(Sha256, OfTheStandardsExamples) {
  const auto sum = [](std::initializer_list<std::string> pieces) {
    Sha256 hash;
    for (const std::string& piece : pieces) {
      hash.update({reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()});
    }
    return hash.finish();
  };
  constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(sum({"abc"}), kAbc);
  EXPECT_EQ(sum({"a", "", "bc"}), kAbc);
  EXPECT_EQ(sum({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(FashionMnist, TakesTheFirstDirectoryThatHasTheFiles) {
  const Environment none("RINGLET_DATA", nullptr);
  const testing::TemporaryDirectory empty, full;
  testing::write_small_set(full.path());
  EXPECT_EQ(find_fashion_mnist({}, {empty.path(), full.path()}), full.path());
}

TEST(FashionMnist, AnExplicitDirectoryComesFirstThenTheEnvironment) {
  const testing::TemporaryDirectory named, environment, installed;
  for (const auto* directory : {&named, &environment, &installed}) {
    testing::write_small_set(directory->path());
  }
  const Environment variable("RINGLET_DATA", environment.path().c_str());
  EXPECT_EQ(find_fashion_mnist(named.path(), {installed.path()}), named.path());
  EXPECT_EQ(find_fashion_mnist({}, {installed.path()}), environment.path());
}

TEST(FashionMnist, IsFoundWhereTorchvisionPutsIt) {
  const testing::TemporaryDirectory root;
  for (const char* folder : {"MNIST/raw", "FashionMNIST/raw"}) {
    fs::create_directories(root / folder);
    testing::write_small_set(root / folder);
  }
  EXPECT_EQ(find_fashion_mnist(root.path(), {}), root / "FashionMNIST/raw");
  EXPECT_EQ(find_fashion_mnist(root / "FashionMNIST", {}), root / "FashionMNIST/raw");
}

TEST(FashionMnist, ANamedDirectoryWithoutTheFilesIsAnError) {
  const testing::TemporaryDirectory empty, full;
  testing::write_small_set(full.path());
  const Environment variable("RINGLET_DATA", empty.path().c_str());
  EXPECT_TRUE(says(message_of<DataError>([&] { find_fashion_mnist({}, {full.path()}); }),
                   {empty.path().string(), "RINGLET_DATA", "missing train-images-idx3-ubyte"}));
  EXPECT_TRUE(says(message_of<DataError>([&] { find_fashion_mnist("nowhere", {full.path()}); }),
                   {"nowhere", "--data-dir"}));
}

TEST(FashionMnist, SaysWhereItLookedAndWhatToDo) {
  const Environment none("RINGLET_DATA", nullptr);
  const testing::TemporaryDirectory one, two;
  EXPECT_TRUE(says(message_of<DataError>([&] {
                     find_fashion_mnist({}, {one.path(), two.path()});
                   }),
                   {one.path().string(), two.path().string(), "train-images-idx3-ubyte",
                    "dataset-fashion-mnist", "--data-dir", "--data synthetic"}));
}

TEST(FashionMnist, RefusesFilesThatAreNotFashionMnist) {
  const testing::TemporaryDirectory directory;
  testing::write_small_set(directory.path());
  EXPECT_TRUE(says(message_of<DataError>([&] { load_fashion_mnist(directory.path()); }),
                   {directory.path().string(), "not Fashion-MNIST's file", "expected sha256",
                    "c59f468a2f67", "--data DIRECTORY"}));
}

TEST(FashionMnist, LooksInTheCacheOfTheUser) {
  const Environment home("HOME", "/home/somebody");
  const std::vector<fs::path> directories = fashion_mnist_directories();
  EXPECT_EQ(directories.back(), "/home/somebody/.cache/ringlet/fashion-mnist");
  EXPECT_NE(std::find(directories.begin(), directories.end(), "/usr/share/datasets/fashion-mnist"),
            directories.end());
}

TEST(FashionMnist, TheRealSet) {
  const std::vector<fs::path> directories = fashion_mnist_directories();
  if (variable("RINGLET_DATA") == nullptr &&
      std::none_of(directories.begin(), directories.end(), has_idx_files)) {
    GTEST_SKIP() << "Fashion-MNIST is not installed";
  }
  const Splits splits = load_fashion_mnist();
  EXPECT_EQ(splits.train->size(), 60000);
  EXPECT_EQ(splits.test->size(), 10000);
  EXPECT_EQ(splits.train->pixels(), 784);
  EXPECT_NEAR(splits.train->statistics()[0].mean, 0.286041, 1e-6);
  EXPECT_NEAR(splits.train->statistics()[0].deviation, 0.353024, 1e-6);
  EXPECT_EQ(splits.test->target_names()[9], "Ankle boot");
  for (int label = 0; label < 10; ++label) {
    const auto count = [&](const Dataset& set) {
      return std::count(set.targets().begin(), set.targets().end(), label);
    };
    EXPECT_EQ(count(*splits.train), 6000);
    EXPECT_EQ(count(*splits.test), 1000);
  }
}

TEST(OpenDataset, NamesTheChoices) {
  EXPECT_TRUE(
      says(message_of<DataError>([] { open_dataset("fashon-mnist"); }),
           {"fashon-mnist",
            "fashion-mnist, synthetic, cifar-10, synthetic-faces:C, random:CxHxW or a directory"}));
}

TEST(OpenDataset, OpensADirectoryAndTheSyntheticSet) {
  const testing::TemporaryDirectory directory;
  testing::write_small_set(directory.path());
  EXPECT_EQ(open_dataset(directory.path().string()).train->size(), 20);
  const OpenOptions options{.synthetic_train = 30, .synthetic_test = 12};
  EXPECT_EQ(open_dataset("synthetic", options).train->size(), 30);
  EXPECT_EQ(open_dataset("synthetic", options).test->size(), 12);
}

TEST(OpenDataset, OpensASetOfTheCallersByName) {
  const auto none = std::make_shared<const MemoryDataset>(DatasetInfo{"waves", 1, 1, 1, {"a"}},
                                                          std::vector<std::uint8_t>{9},
                                                          std::vector<std::int32_t>{0});
  std::vector<NamedDataset> known = named_datasets();
  known.push_back({.name = "waves", .open = [&](const OpenOptions&) {
                     return Splits{none, none};
                   }});
  EXPECT_EQ(open_dataset("waves", {}, known).test, none);
  EXPECT_TRUE(is_dataset("waves", known));
  EXPECT_FALSE(is_dataset("waves"));
  EXPECT_TRUE(says(
      message_of<DataError>([&] { open_dataset("wave", {}, known); }),
      {"fashion-mnist, synthetic, cifar-10, synthetic-faces:C, random:CxHxW, waves or a directory"}));
}

}  // namespace
}  // namespace ringlet::data
