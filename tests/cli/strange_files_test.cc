// Files that are none: pipes that nobody writes into, devices without an end, links that lead to
// themselves, files that are larger than the memory. Each is refused at once and by its name.
#include <sys/stat.h>

#include <functional>

#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

struct Strange {
  const char* name;
  std::function<void(const fs::path&)> make;
};

const std::vector<Strange> kStrange{
    {"a pipe", [](const fs::path& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
    {"an endless device", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
    {"a looping link", [](const fs::path& path) { fs::create_symlink(path.filename(), path); }}};

/// A run of two steps of four, of which copies are spoilt.
class StrangeFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", path("run")}))));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  static std::string spoilt_run(const std::string& name, const Strange& strange) {
    fs::remove_all(path("copy"));
    fs::copy(path("run"), path("copy"), fs::copy_options::recursive);
    fs::remove(path("copy/" + name));
    strange.make(path("copy/" + name));
    return path("copy");
  }
  /// Calls visit(run) with `name` of the run being each of the strange files.
  template <class Visit>
  static void for_each_strange(const char* name, Visit visit) {
    for (const Strange& strange : kStrange) {
      SCOPED_TRACE(std::string(name) + " is " + strange.name);
      visit(spoilt_run(name, strange));
    }
  }

  static std::unique_ptr<TemporaryDirectory> folder_;
};

std::unique_ptr<TemporaryDirectory> StrangeFiles::folder_;

TEST_F(StrangeFiles, OfAStateDoNotHoldUpWhoResumes) {
  for (const char* name : {"state/state.json", "state/model.safetensors", "metrics.jsonl"}) {
    for_each_strange(name, [&](const std::string& run) {
      const Outcome outcome =
          ringlet({"train", "--resume", run, "--synthetic-train", "256", "--synthetic-test", "64"});
      EXPECT_TRUE(fails_with(1, outcome, {fs::path(name).filename().string()}));
    });
  }
}

TEST_F(StrangeFiles, InPlaceOfAConfigurationAreReplacedOrNamed) {
  for_each_strange("config.toml", [&](const std::string& run) {
    const Outcome outcome =
        ringlet({"train", "--resume", run, "--synthetic-train", "256", "--synthetic-test", "64"});
    EXPECT_FALSE(outcome.timed_out);
    if (outcome.code != 0) {
      EXPECT_TRUE(fails_with(1, outcome, {"config.toml"}));
    }
  });
}

TEST_F(StrangeFiles, DoNotHoldUpWhoInspects) {
  for (const char* name : {"model.safetensors", "state/state.json"}) {
    for_each_strange(name, [&](const std::string& run) {
      const Outcome outcome = ringlet({"inspect", run});
      EXPECT_FALSE(outcome.timed_out);
      if (outcome.code != 0) {
        EXPECT_TRUE(fails_with(1, outcome, {}));
      }
    });
  }
}

TEST_F(StrangeFiles, AreNamedInAReport) {
  for_each_strange("metrics.jsonl", [&](const std::string& run) {
    EXPECT_TRUE(
        fails_with(1, ringlet({"report", run, "--out", path("none.html")}), {"metrics.jsonl"}));
  });
  for (const char* name : {"run.json", "config.toml", "state/state.json"}) {
    for_each_strange(name, [&](const std::string& run) {
      EXPECT_TRUE(succeeds(ringlet({"report", run, "--out", path("page.html"), "--force"})));
      const std::string page = read_file(path("page.html"));
      EXPECT_TRUE(
          holds(page, {"<p class=\"warning\">", fs::path(name).filename().string() + ": "}));
    });
  }
}

TEST_F(StrangeFiles, AreNoConfiguration) {
  for (const Strange& strange : kStrange) {
    SCOPED_TRACE(strange.name);
    fs::remove(path("config"));
    strange.make(path("config"));
    EXPECT_TRUE(
        fails_with(2, ringlet(quick_train({"--config", path("config")})), {path("config")}));
  }
}

// A pipe without a reader would be waited for, in silence and for ever.
TEST_F(StrangeFiles, TakeMetricsOnlyWhereSomebodyReads) {
  const std::string pipe = path("metrics"), read = path("read");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--metrics", pipe, "--out", path("unread")})),
                         {"--metrics " + pipe, "nobody reads", "start its reader first"}));
  EXPECT_FALSE(fs::exists(path("unread")));
  Program reader(ShellLine{"cat '" + pipe + "' > '" + read + "'"});
  EXPECT_TRUE(succeeds(ringlet(quick_train({"--metrics", pipe}))));
  EXPECT_EQ(reader.wait().code, 0);
  EXPECT_TRUE(
      holds(read_file(read), {R"({"kind":"step","epoch":1,"step":4,)", R"("kind":"epoch")"}));
}

TEST_F(StrangeFiles, HaveNoRowsToCompareWith) {
  for (const Strange& strange : kStrange) {
    SCOPED_TRACE(strange.name);
    fs::remove(path("rows"));
    strange.make(path("rows"));
    EXPECT_TRUE(fails_with(
        1, ringlet({"bench", "all-reduce", "--no-measure", "--with", path("rows")}), {"rows: "}));
  }
}

TEST_F(StrangeFiles, AmongPicturesCostNoOther) {
  fs::create_directory(path("pictures"));
  write_file(path("pictures/a.pgm"), "P5 1 1 255\n7");
  for (const char* name : {"b.png", "z.jpg"})
    fs::create_symlink(name, path("pictures") / fs::path(name));
  fs::create_symlink("nowhere", path("pictures/c.png"));
  ASSERT_EQ(::mkfifo(path("pictures/d.png").c_str(), 0600), 0);
  const Outcome outcome = ringlet({"predict", "--checkpoint", path("run"), path("pictures")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(holds(outcome.out, {"a.pgm (1 x 1)"}));
  EXPECT_TRUE(holds(outcome.err, {"warning: " + path("pictures/b.png: cannot be opened"),
                                  "warning: " + path("pictures/c.png: there is no such file"),
                                  "warning: " + path("pictures/d.png: is not a regular file"),
                                  "warning: " + path("pictures/z.jpg: cannot be opened"),
                                  "error: 4 of 5 images cannot be read"}));
}

/// A file of `bytes` bytes, which take no room on the disk. False where the file system cannot.
bool make_sparse(const fs::path& path, const std::string& head, std::uintmax_t bytes) {
  write_file(path, head);
  std::error_code error;
  fs::resize_file(path, bytes, error);
  return !error;
}

TEST_F(StrangeFiles, BeyondTheMemoryAreRefused) {
  constexpr std::uint32_t kSide = 10'000;
  constexpr std::uintmax_t kImages = std::uintmax_t{kSide} * kSide * kSide;
  fs::create_directory(path("data"));
  write_small_set(path("data"));
  const fs::path images = path("data/train-images-idx3-ubyte");
  if (!make_sparse(images, idx_header(8, {kSide, kSide, kSide}), 16 + kImages)) GTEST_SKIP();
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--data", path("data")}),
                         {images.string(), "more than this machine's memory"}));

  const std::string header =
      R"({"a":{"dtype":"F32","shape":[250000000000],"data_offsets":[0,1000000000000]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  if (!make_sparse(path("w"), length + header, 8 + header.size() + kImages)) GTEST_SKIP();
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--init", path("w")})),
                         {path("w"), "larger than this machine's memory"}));
}

TEST_F(StrangeFiles, BeyondAnySizeOfTheirKindAreRefused) {
  const Strange large{"large", [](const fs::path& file) { make_sparse(file, "{", 2 << 20); }};
  const std::string run = spoilt_run("state/state.json", large);
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", run}), {"state.json has 2097152 bytes"}));
  make_sparse(path("copy/run.json"), "{", 2 << 20);
  EXPECT_TRUE(succeeds(ringlet({"report", run, "--out", path("page.html"), "--force"})));
  EXPECT_TRUE(holds(read_file(path("page.html")), {"run.json has 2097152 bytes"}));
  make_sparse(path("many"), "{", 1 << 30);
  EXPECT_TRUE(fails_with(
      1, ringlet({"bench", "all-reduce", "--no-measure", "--with", path("many")}), {"many has"}));
}

}  // namespace
}  // namespace ringlet::testing
