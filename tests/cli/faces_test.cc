// `ringlet convert` and `ringlet verify` as a user has them: what is replaced and what is not, what
// an interruption leaves, and figures that know no ranks.
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/pickles.h"
#include "tests/support/pictures.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

std::string picture(int number) {
  data::Image image = gradient_image(28, 28, 1);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(value * number);
  return as_pnm(image);
}

std::string set_of(int pairs) {
  std::vector<std::string> pictures;
  std::vector<bool> same;
  for (int i = 0; i < 2 * pairs; ++i) pictures.push_back(picture(i));
  for (int i = 0; i < pairs; ++i) same.push_back(i % 2 == 0);
  return pickled_pairs(pictures, same);
}

class Faces : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  const TemporaryDirectory folder_;
};

TEST_F(Faces, AreConvertedThereAndBack) {
  write_file(path("lfw.bin"), set_of(3));
  const Outcome pairs = ringlet({"convert", path("lfw.bin"), "--out", path("lfw")});
  EXPECT_TRUE(succeeds(pairs));
  EXPECT_TRUE(holds(pairs.out, {"6 pictures and pairs.txt, 3 pairs, 2 of the same identity"}));
  EXPECT_EQ(read_file(path("lfw/5.pgm")), picture(5));
  EXPECT_EQ(read_file(path("lfw/pairs.txt")),
            "0.pgm\t1.pgm\t1\n2.pgm\t3.pgm\t0\n4.pgm\t5.pgm\t1\n");
  for (const char* name : {"faces/b/1.pgm", "faces/b/2.pgm", "faces/a/x.pgm"}) {
    fs::create_directories(fs::path(path(name)).parent_path());
    write_file(path(name), picture(static_cast<int>(fs::path(name).stem().string()[0])));
  }
  EXPECT_TRUE(succeeds(ringlet({"convert", path("faces"), "--out", path("f.rec")})));
  const Outcome back = ringlet({"convert", path("f.rec"), "--out", path("back")});
  EXPECT_TRUE(holds(back.out, {"3 pictures of 2 identities"}));
  EXPECT_EQ(read_file(path("back/0/1.pgm")), picture('x'));
  EXPECT_EQ(read_file(path("back/1/3.pgm")), picture('2'));
}

TEST_F(Faces, ReplaceOnlyWhatIsTheirsAndOnlyWhenForced) {
  write_file(path("a.bin"), set_of(2));
  write_file(path("b.bin"), set_of(1));
  const auto into = [&](const char* bin, const Arguments& more = {}) {
    return ringlet(Arguments{"convert", path(bin), "--out", path("out")} + more);
  };
  EXPECT_TRUE(succeeds(into("a.bin")));
  EXPECT_TRUE(fails_with(2, into("b.bin"), {"out is there already", "--force"}));
  EXPECT_TRUE(fs::exists(path("out/3.pgm")));
  EXPECT_TRUE(succeeds(into("b.bin", {"--force"})));
  EXPECT_FALSE(fs::exists(path("out/3.pgm")));
  write_file(path("out/mine"), "mine");
  EXPECT_TRUE(fails_with(2, into("a.bin", {"--force"}), {"holds mine"}));
  EXPECT_EQ(read_file(path("out/mine")), "mine");
  EXPECT_TRUE(fails_with(2, ringlet({"convert", path("a.bin"), "--out", path("a.bin"), "--force"}),
                         {"is what FILE reads"}));
}

TEST_F(Faces, LeaveNothingWhereTheyAreInterrupted) {
  write_file(path("a.bin"), set_of(20000));
  Program program({"convert", path("a.bin"), "--out", path("out")});
  const auto begun = [&] {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().starts_with("out.tmp.")) return true;
    }
    return false;
  };
  for (int i = 0; i < 3000 && !begun(); ++i) usleep(1000);
  program.send(SIGINT);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 128 + SIGINT) << stopped.err;
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_FALSE(begun());
}

TEST_F(Faces, AreVerifiedAlikeOnAnyNumberOfRanks) {
  const Arguments lenet{"--model", "lenet", "--out", path("run")};
  ASSERT_TRUE(succeeds(ringlet(quick_train(lenet))));
  write_file(path("set.bin"), set_of(150));
  const auto verify = [&](const Arguments& more) {
    return ringlet(Arguments{"verify", "--checkpoint", path("run"), path("set.bin")} + more);
  };
  const Outcome words = verify({"--out", path("roc")});
  EXPECT_TRUE(succeeds(words));
  EXPECT_TRUE(holds(words.out, {"set  150 pairs, 75 of the same identity", "XNorm",
                                "Accuracy-Flip     0.", "1e-2 -", "saved " + path("roc/roc.csv")}));
  EXPECT_TRUE(holds(read_file(path("roc/roc.csv")),
                    {"set,threshold,false_accept_rate,true_accept_rate\nset,0,0,0\n", ",1,1\n"}));
  EXPECT_TRUE(fails_with(2, verify({"--out", path("roc")}), {"roc.csv is there already"}));
  const Outcome one = verify({"--json"});
  const nlohmann::json document = nlohmann::json::parse(one.out);
  EXPECT_EQ(document["sets"][0]["pairs"], 150);
  EXPECT_TRUE(document["sets"][0]["tar_at_far"]["1e-2"].is_null());
  for (const char* flag : {"--replicas", "--processes"}) {
    EXPECT_EQ(verify({"--json", flag, "3"}).out, one.out) << flag;
  }
  EXPECT_NE(verify({"--json", "--flip", "none"}).out, one.out);
  EXPECT_TRUE(fails_with(2, ringlet({"verify", "--checkpoint", path("run")}), {"PAIRS"}));
}

}  // namespace
}  // namespace ringlet::testing
