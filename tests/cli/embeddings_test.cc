// Models of embeddings (--loss arcface and the like), by the program: what it says of them, and who
// reads their files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

const std::string kEnd = " %   loss ";

/// The line with the accuracy over all test images.
std::string last_row(const std::string& out) {
  const std::size_t at = out.rfind(kEnd);
  EXPECT_NE(at, std::string::npos) << out;
  const std::size_t begin = out.rfind('\n', at) + 1;
  return out.substr(begin, out.find('\n', at) - begin);
}

/// What follows the header, of 128 bytes.
std::vector<float> numbers_of(const std::string& array) {
  std::vector<float> numbers((array.size() - 128) / sizeof(float));
  std::memcpy(numbers.data(), array.data() + 128, numbers.size() * sizeof(float));
  return numbers;
}

class Embeddings : public ::testing::Test {
 protected:
  Embeddings() {
    const Outcome trained = ringlet(quick_train(
        {"--loss", "arcface", "--embedding-size", "6", "--scale", "16", "--out", folder_ / "run"}));
    EXPECT_TRUE(succeeds(trained));
    trained_ = trained.out;
  }
  std::string run() const { return folder_ / "run"; }

  TemporaryDirectory folder_;
  std::string trained_;
};

TEST_F(Embeddings, AreEvaluatedByTheNearestCentre) {
  const std::string wanted = last_row(trained_);
  for (const Arguments& how :
       {Arguments{}, Arguments{"--replicas", "2"}, Arguments{"--processes", "2"}}) {
    const Outcome outcome = ringlet(Arguments{"eval", "--checkpoint", run()} + how);
    EXPECT_TRUE(succeeds(outcome));
    EXPECT_EQ(last_row(outcome.out), wanted);
  }
}

TEST_F(Embeddings, AreWrittenForNumPy) {
  const auto array = [&](const Arguments& of) {
    const std::string file = folder_ / "e.npy";
    EXPECT_TRUE(succeeds(ringlet(
        Arguments{"predict", "--checkpoint", run(), "--embeddings", file, "--force"} + of)));
    return read_file(file);
  };
  const std::string all = array({"--data", "synthetic", "--synthetic-test", "9"});
  const std::string shape = "'descr': '<f4', 'fortran_order': False, 'shape': (9, 6), }";
  EXPECT_EQ(all.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_NE(all.find(shape), std::string::npos);
  EXPECT_EQ(all.size(), 128U + 9 * 6 * sizeof(float));
  EXPECT_EQ(all[127], '\n');
  const std::string pixels(28 * 28, '\x40');
  write_file(folder_ / "a.pgm", "P5 28 28 255\n" + pixels);
  write_file(folder_ / "b.pgm", "P5 28 28 255\n" + std::string(28 * 28, '\x7f'));
  const std::string two = array({folder_ / "a.pgm", folder_ / "b.pgm"});
  const std::string one = array({folder_ / "b.pgm"});
  ASSERT_EQ(two.size(), 128U + 2 * 6 * sizeof(float));
  const std::vector<float> both = numbers_of(two), alone = numbers_of(one);
  // A matrix library may add in another order where there are more rows.
  const float largest = std::abs(*std::max_element(
      alone.begin(), alone.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
  float difference = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(both[6 + i], alone[i], 1e-5F * largest) << i;
    difference = std::max(difference, std::abs(both[i] - alone[i]));
  }
  EXPECT_GT(difference, 1e-2F * largest);
}

TEST_F(Embeddings, HaveTheNamesOfThePicturesBesideThem) {
  const fs::path set = folder_ / "set";
  for (const char* name : {"b", "a"}) {
    fs::create_directories(set / name);
    write_file(set / name / "1.pgm", "P5 28 28 255\n" + std::string(28 * 28, *name));
  }
  const std::string file = folder_ / "e.npy", names = folder_ / "e.txt";
  const Arguments ask{"predict", "--checkpoint", run(), set.string(), "--embeddings", file};
  const Outcome asked = ringlet(ask);
  EXPECT_TRUE(succeeds(asked));
  EXPECT_TRUE(holds(asked.out, {"saved " + names + ": their names, a line each\n"}));
  const std::string a = (set / "a/1.pgm").string() + "\n", b = (set / "b/1.pgm").string() + "\n";
  EXPECT_EQ(read_file(names), a + b);
  const std::string two = read_file(file);
  // Names that are taken, by either file.
  for (const std::string& kept : {file, names}) {
    fs::remove(kept == file ? names : file);
    EXPECT_TRUE(fails_with(2, ringlet(ask), {kept, "--force"}));
    write_file(kept == file ? names : file, "");
  }
  // A broken picture is left out of both, and named.
  write_file(set / "a/2.pgm", "P5 28");
  const Outcome broken = ringlet(ask + Arguments{"--force"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_TRUE(holds(broken.err, {"warning: ", "a/2.pgm", "1 of 3 images cannot be read"}));
  EXPECT_EQ(read_file(names), a + b);
  EXPECT_EQ(read_file(file), two);
}

TEST_F(Embeddings, OfAFolderOfClassesHaveItsNames) {
  write_picture_folder(folder_ / "parts", 3, 2);
  const std::string photos = folder_ / "parts", plain = folder_ / "plain";
  const Arguments train{"train", "--data",   photos, "--model",      "mlp", "--image-size",
                        "12",    "--epochs", "1",    "--batch-size", "6",   "--out",
                        plain};
  ASSERT_TRUE(succeeds(ringlet(train)));
  const std::string file = folder_ / "e.npy";
  ASSERT_TRUE(succeeds(
      ringlet({"predict", "--checkpoint", plain, "--data", photos, "--embeddings", file})));
  const std::string names = read_file(folder_ / "e.txt");
  EXPECT_EQ(std::count(names.begin(), names.end(), '\n'), 6) << names;
  EXPECT_EQ(names.substr(0, 5), "blue/") << names;
}

/// Of a classifier they are what its last layer takes: of the mlp 128 numbers.
TEST_F(Embeddings, OfAClassifierAreItsFeatures) {
  const std::string plain = folder_ / "plain", file = folder_ / "f.npy";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", plain}))));
  const Outcome outcome = ringlet({"predict", "--checkpoint", plain, "--data", "synthetic",
                                   "--synthetic-test", "9", "--embeddings", file});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"a row of 128 numbers", "what the last layer takes"}));
  EXPECT_NE(read_file(file).find("'shape': (9, 128), }"), std::string::npos);
}

TEST_F(Embeddings, AreExportedAndVerifiedWithoutCentres) {
  std::filesystem::remove(folder_ / "run/centres.safetensors");
  const Outcome exported =
      ringlet({"export", "--checkpoint", run(), "--onnx", folder_ / "model.onnx"});
  EXPECT_TRUE(succeeds(exported));
  EXPECT_NE(exported.out.find("embedding  float [N, 6]"), std::string::npos) << exported.out;
  const Outcome refused = ringlet({"eval", "--checkpoint", run()});
  EXPECT_NE(refused.err.find("'ringlet verify'"), std::string::npos) << refused.err;
}

TEST_F(Embeddings, OfAsManyNumbersAsThereAreClassesAreNotTakenForThemSilently) {
  const auto begun = [&](const std::string& from, const std::string& to, const Arguments& more) {
    const Outcome outcome = ringlet(
        quick_train(Arguments{"--init", folder_ / from, "--out", folder_ / to, "--force"} + more));
    EXPECT_TRUE(succeeds(outcome));
    return outcome.out;
  };
  const Arguments margin{"--loss", "arcface", "--embedding-size", "10"};
  EXPECT_TRUE(
      succeeds(ringlet(quick_train(margin + Arguments{"--out", folder_ / "run", "--force"}))));
  const std::string classes = begun("run", "classes", {});
  EXPECT_NE(classes.find("init      it gave embeddings, and no classes, and the last layer begins"),
            std::string::npos)
      << classes;
  const std::string numbers = begun("classes", "numbers", margin);
  EXPECT_NE(numbers.find("init      it gave classes, and no embeddings, and the last layer begins"),
            std::string::npos)
      << numbers;
  EXPECT_EQ(begun("classes", "others", {}).find("it gave"), std::string::npos);
}

TEST_F(Embeddings, HaveAPageOfTheirRun) {
  EXPECT_TRUE(succeeds(ringlet({"report", run(), "--out", folder_ / "page"})));
}

}  // namespace
}  // namespace ringlet::testing
