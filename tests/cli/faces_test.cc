// `ringlet convert` and `ringlet verify` as a user has them: what is replaced and what is not, what
// an interruption leaves, and figures that know no ranks.
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

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
  EXPECT_TRUE(fails_with(2, verify({path("./set.bin")}), {"PAIRS names ", "set.bin twice"}));
  fs::create_directory(path("other"));
  write_file(path("other/set.bin"), set_of(10));
  const Outcome two = verify({path("other/set.bin"), "--json", "--out", path("two")});
  ASSERT_TRUE(succeeds(two));
  const nlohmann::json sets = nlohmann::json::parse(two.out)["sets"];
  EXPECT_EQ(sets[1]["name"], "other/set") << "each has a name of its own, as in a training";
  EXPECT_NE(sets[0]["name"], "set");
  EXPECT_TRUE(holds(read_file(path("two/roc.csv")), {"\nother/set,0,0,0\n"}));
}

/// The lines of a verification.
std::vector<std::string> verified_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("[")) lines.push_back(line);
  }
  return lines;
}

TEST_F(Faces, AreVerifiedWhileARunTrains) {
  write_file(path("set.bin"), set_of(40));
  write_file(path("few.bin"), set_of(3));
  const std::string sets = path("set.bin") + "," + path("few.bin");
  const auto train = [&](const char* out, const Arguments& more) {
    return ringlet(quick_train(Arguments{"--out", path(out), "--exact"} + more));
  };
  const Outcome one = train("one", {"--verify", sets, "--verify-every", "2"});
  ASSERT_TRUE(succeeds(one));
  const std::vector<std::string> lines = verified_in(one.out);
  ASSERT_EQ(lines.size(), 12U);  // of two sets, twice
  EXPECT_TRUE(lines[0].starts_with("[set][2]XNorm: ")) << lines[0];
  EXPECT_TRUE(lines[4].starts_with("[few][2]Accuracy-Flip: 0.")) << lines[4];
  EXPECT_TRUE(lines[8].starts_with("[set][4]Accuracy-Highest: 0.")) << lines[8];
  EXPECT_TRUE(holds(one.out, {"pairs     set (40 pairs), few (3 pairs), every 2 steps"}));
  EXPECT_TRUE(holds(read_file(path("one/metrics.jsonl")), {R"("set":"few")"}));
  EXPECT_TRUE(holds(read_file(path("one/roc.csv")), {"\nset,0,0,0\n", "\nfew,0,0,0\n"}));
  EXPECT_TRUE(holds(read_file(path("one/distances.csv")), {"\nset,39,0,", "\nfew,2,1,"}));

  const Outcome two = train("two", {"--verify", sets, "--verify-every", "2", "--processes", "2"});
  EXPECT_EQ(verified_in(two.out), lines) << two.err;
  ASSERT_TRUE(succeeds(train("none", {})));
  for (const char* name : {"two", "none"}) {
    EXPECT_EQ(read_file(path(name) + "/model.safetensors"),
              read_file(path("one/model.safetensors")))
        << name;
  }
  EXPECT_TRUE(fs::exists(path("one/best/model.safetensors")));
  EXPECT_FALSE(fs::exists(path("none/best")));
  const Outcome best = ringlet({"verify", "--checkpoint", path("one/best"), path("set.bin")});
  EXPECT_TRUE(succeeds(best));

  const Outcome page = ringlet({"report", path("one"), "--out", path("page.html")});
  EXPECT_TRUE(succeeds(page));
  EXPECT_TRUE(holds(read_file(path("page.html")),
                    {"<h2>Verification</h2>", "id=\"verification-accuracy\"",
                     "id=\"verification-roc\"", "id=\"verification-distances-2\"",
                     "id=\"wrong-pairs-1\">\n<figure><span class=\"two\"><img ",
                     "<img src=\"data:image/png;base64,"}));

  // Stopped and gone on with, the pairs need not be named again; they may be others.
  ASSERT_TRUE(succeeds(train("part", {"--verify", sets, "--max-steps", "2"})));
  const Outcome rest = ringlet({"train", "--resume", path("part")});
  ASSERT_TRUE(succeeds(rest));
  EXPECT_EQ(verified_in(rest.out).size(), 6U) << rest.out;
  EXPECT_EQ(read_file(path("part/model.safetensors")), read_file(path("one/model.safetensors")));
  fs::remove(path("few.bin"));
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", path("part")}),
                         {"few.bin', which is not here; say with --verify where they are now"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", path("part"), "--verify", path("set.bin")})));

  // What another run has left is not taken for this one's.
  ASSERT_TRUE(fails_with(2, train("one", {}), {"holds another run"}));
  ASSERT_TRUE(succeeds(train("one", {"--force"})));
  for (const char* name : {"one/best", "one/roc.csv", "one/distances.csv"}) {
    EXPECT_FALSE(fs::exists(path(name))) << name;
  }
}

TEST_F(Faces, HaveStatesThatAreKnownToBeWhole) {
  ASSERT_TRUE(succeeds(
      ringlet(quick_train({"--out", path("run"), "--loss", "arcface", "--embedding-size", "4"}))));
  const auto json = nlohmann::json::parse(ringlet({"inspect", path("run/state"), "--json"}).out);
  EXPECT_EQ(json[0]["can_be_resumed"], true) << json[0];
}

TEST_F(Faces, OfAFileThatIsRefusedNoRunBegins) {
  write_file(path("cut.bin"), set_of(3).substr(0, 900));
  for (const char* name : {"none.bin", "cut.bin"}) {
    const Outcome refused = ringlet(quick_train({"--out", path("run"), "--verify", path(name)}));
    EXPECT_TRUE(fails_with(1, refused, {name}));
    EXPECT_FALSE(fs::exists(path("run/metrics.jsonl")));
  }
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--out", path("run"), "--verify-every", "5"})),
                         {"--verify-every: is for --verify"}));
}

TEST_F(Faces, AreLearntFromIdentitiesAloneWherePairsMeasure) {
  for (int identity = 0; identity < 3; ++identity) {
    const fs::path folder = path("faces") + "/" + std::to_string(identity);
    fs::create_directories(folder);
    for (int i = 0; i < 4; ++i) {
      write_file(folder / (std::to_string(i) + ".pgm"), picture(identity * 4 + i));
    }
  }
  write_file(path("set.bin"), set_of(10));
  const Arguments train{"train", "--model", "mlp", "--data", path("faces"), "--epochs", "1"};
  const Outcome of_classes = ringlet(train + Arguments{"--no-out"});
  EXPECT_TRUE(holds(of_classes.err, {"3 of 12 pictures are tested on, and not trained on"}));
  const Outcome verified =
      ringlet(train + Arguments{"--loss", "arcface", "--embedding-size", "4", "--image-size", "8",
                                "--verify", path("set.bin"), "--out", path("run")});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_TRUE(holds(verified.err, {"the test is on 12 of the training pictures"}));
  EXPECT_EQ(ringlet({"train", "--resume", path("run")}).code, 0);
  EXPECT_EQ(verified_in(verified.out).size(), 3U);
}

TEST_F(Faces, OfIdentitiesAloneAreEvaluatedAsTheRunTestedOnThem) {
  write_file(path("set.bin"), set_of(3));
  for (int i = 0; i < 1002; ++i) {
    const fs::path folder = path("faces") + (i % 2 == 0 ? "/a" : "/b");
    fs::create_directories(folder);
    write_file(folder / (std::to_string(i) + ".pgm"), picture(i));
  }
  const Outcome trained =
      ringlet({"train", "--model", "mlp", "--data", path("faces"), "--image-size", "8", "--epochs",
               "1", "--verify", path("set.bin"), "--out", path("run")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  fs::copy(path("faces"), path("copy"), fs::copy_options::recursive);
  const std::string all = trained.out.substr(trained.out.find("\nall "));
  for (const Arguments& more : {Arguments{}, Arguments{"--data", path("copy")}}) {
    const Outcome evaluated = ringlet(Arguments{"eval", "--checkpoint", path("run")} + more);
    EXPECT_TRUE(holds(evaluated.out, {"1000 images of 3 x 8 x 8"})) << evaluated.err;
    EXPECT_EQ(evaluated.out.find("other data"), std::string::npos) << evaluated.out;
    EXPECT_NE(all.find(evaluated.out.substr(evaluated.out.find("\nall "))), std::string::npos)
        << trained.out << evaluated.out;
  }
  const Arguments ask{"predict", "--checkpoint", path("run"), "--data", path("faces"), "--split"};
  EXPECT_TRUE(holds(ringlet(ask + Arguments{"train"}).out, {"1002 images of 3 x 8 x 8"}));
}

}  // namespace
}  // namespace ringlet::testing
