// `ringlet report`: the page stands alone, holds every plot, works in a browser, and says what it
// could not have.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kPlots{"train-loss", "epoch-loss", "test-accuracy", "learning-rate",
                                      "grad-norm",  "speed",      "time",          "confusion"};

/// One run for all tests that only read it.
class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    ASSERT_TRUE(
        succeeds(ringlet(quick_train({"--epochs", "3", "--replicas", "2", "--out", run()}))));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string run() { return *folder_ / "run"; }

  /// The page of these runs, or "" and a failure.
  std::string page_of(const Arguments& runs) {
    const Outcome outcome =
        ringlet(Arguments{"report"} + runs + Arguments{"--out", page(), "--force"});
    EXPECT_TRUE(succeeds(outcome));
    return read_file(page());
  }
  std::string page() const { return own_ / "page.html"; }
  /// A copy of the run to take something away from.
  fs::path copy_of_run() {
    fs::path copy = own_ / "copy";
    fs::copy(run(), copy, fs::copy_options::recursive);
    return copy;
  }

  TemporaryDirectory own_;

 private:
  static TemporaryDirectory* folder_;
};

TemporaryDirectory* Report::folder_ = nullptr;

bool has_id(const std::string& html, const std::string& id) {
  return html.find(" id=\"" + id + "\"") != std::string::npos;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

TEST_F(Report, HoldsEveryPartAndAsksNothingOfTheNetwork) {
  const std::string html = page_of({run()});
  for (const std::string& id : kPlots) EXPECT_TRUE(has_id(html, id)) << id;
  EXPECT_TRUE(has_id(html, "mistakes"));
  EXPECT_TRUE(holds(html, {"mlp on synthetic", "3 epochs", "Ankle boot", "data:image/png;base64,",
                           "Test accuracy"}));
  for (const std::string& address : matches(html, "(https?://[^'\"\\s]+)")) {
    EXPECT_EQ(address, "http://www.w3.org/2000/svg");  // a name that the script has to say
  }
  for (const std::string& address : matches(html, "(?:src|href)=\"([^\"]{0,12})")) {
    EXPECT_TRUE(address.starts_with("data:")) << address;
  }
  EXPECT_EQ(html.find("url("), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_LT(html.size(), std::size_t{1} << 20);
}

TEST_F(Report, TellsWhichStageWaitedForWhom) {
  const std::string staged = own_ / "staged";
  ASSERT_TRUE(succeeds(ringlet(
      quick_train({"--epochs", "3", "--stages", "flatten..relu1,fc2..fc3", "--out", staged}))));
  const std::string html = page_of({staged});
  for (const char* id : {"bubble", "stage-time", "stages", "bubbles"}) {
    EXPECT_TRUE(has_id(html, id)) << id;
  }
  EXPECT_TRUE(holds(html, {"<td class=\"text\">flatten .. relu1</td><td class=\"text\">cpu:0</td>",
                           "<td class=\"text\">fc2 .. fc3</td>"}));
  // Of its time: each epoch is in the plot, measured and predicted, and says who waited.
  EXPECT_EQ(matches(html,
                    "<td>[0-9]+ %</td><td>[0-9]+ %</td><td class=\"text\">(stage [01])</td>"
                    "<td>[0-9]+ %</td><td class=\"text\">[a-z0-9 ]+, [0-9]+ %</td>")
                .size(),
            3u);
  EXPECT_EQ(
      matches(html, "(Stage [01] waited most: [0-9]+\u00a0% of its time, most of all for )").size(),
      1u);
  EXPECT_FALSE(has_id(page_of({run()}), "bubble"));
  const std::string both = page_of({run(), staged});
  EXPECT_TRUE(has_id(both, "bubble"));
  EXPECT_TRUE(has_id(both, "stage-time-2"));
  EXPECT_FALSE(has_id(both, "stage-time"));
}

// Leaves each plot's size, what its read-out says under the pointer, and whether the page
// overflows.
constexpr const char* kProbe = R"js(
  for (const figure of document.querySelectorAll('figure.plot')) {
    const svg = figure.querySelector('svg'), area = svg.getBoundingClientRect();
    figure.dataset.probe = Math.round(area.width) + ' by ' + Math.round(area.height);
    if (!svg.dataset.box) continue;
    // The middle of the axes. Their length depends on the runs' names, which stand beside them.
    const [left, right] = svg.dataset.box.split(',').map(Number);
    const middle = (left + right) / 2 / svg.viewBox.baseVal.width;
    svg.dispatchEvent(new PointerEvent('pointermove',
        {clientX: area.left + area.width * middle, clientY: area.top + 40, bubbles: true}));
    figure.dataset.readout = document.getElementById('readout').textContent;
  }
  const root = document.documentElement;
  root.dataset.overflow = root.scrollWidth > root.clientWidth ? 'yes' : 'no';
  const folds = () => [...document.querySelectorAll('details')].map((one) => one.open).join();
  dispatchEvent(new Event('beforeprint'));
  root.dataset.onPaper = folds();
  dispatchEvent(new Event('afterprint'));
  root.dataset.afterwards = folds();
)js";

TEST_F(Report, WorksInABrowserWideAndNarrow) {
  page_of({run(), run()});
  for (const int width : {1280, 500}) {
    const Opened opened = open_in_browser(page(), std::string(kProbe) + kProbeNames, width);
    if (!opened.could) GTEST_SKIP() << opened.why;
    EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos) << opened.dom.substr(0, 300);
    EXPECT_NE(opened.dom.find("data-overflow=\"no\""), std::string::npos) << width;
    EXPECT_NE(opened.dom.find("data-names=\"\""), std::string::npos) << opened.dom.substr(0, 300);
    EXPECT_TRUE(
        holds(opened.dom, {"data-on-paper=\"true,true\"", "data-afterwards=\"false,false\""}));
    for (const std::string& id : kPlots) {
      const auto size =
          matches(opened.dom, "id=\"" + id + "\"[^>]* data-probe=\"([0-9]+) by [0-9]+\"");
      ASSERT_EQ(size.size(), 1u) << id;
      EXPECT_GT(std::stoi(size[0]), 300) << id << " at " << width;
    }
    const auto told = matches(opened.dom, "id=\"train-loss\"[^>]* data-readout=\"([^\"]*)\"");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_TRUE(std::regex_search(told[0], std::regex("^step [0-9]+"))) << told[0];
    EXPECT_GE(matches(told[0], "([0-9]\\.[0-9]+)").size(), 1u) << told[0];
  }
}

TEST_F(Report, ComparesSeveralRuns) {
  const fs::path other = copy_of_run();
  const std::string html = page_of({run(), other.string()});
  EXPECT_TRUE(has_id(html, "runs"));
  EXPECT_TRUE(has_id(html, "confusion"));
  EXPECT_TRUE(has_id(html, "confusion-2"));
  // Both losses, accuracy, rate, norm, speed; and the loss in training beside that of the test.
  EXPECT_EQ(matches(html, "data-name=\"(copy)\"").size(), 6u);
  EXPECT_EQ(matches(html, "data-name=\"(copy, training)\"").size(), 1u);
}

TEST_F(Report, BeginsWithTheAnswer) {
  const std::string answer = "mlp on synthetic: [0-9.]+\u00a0% in [0-9.:]+\u00a0(?:s|min)";
  EXPECT_EQ(matches(page_of({run()}), "<h1>(" + answer + ")</h1>").size(), 1u);
  const fs::path other = copy_of_run();
  std::string lines = read_file(other / "metrics.jsonl");
  lines = std::regex_replace(lines, std::regex("\"test_accuracy\":[0-9.e-]+"),
                             "\"test_accuracy\":0.9876");
  write_file(other / "metrics.jsonl", lines);
  EXPECT_EQ(
      matches(
          page_of({run(), other.string()}),
          "<h1>mlp on synthetic: copy is best, (98\\.8)\u00a0% in [0-9.:]+\u00a0(?:s|min); run, "
          "[0-9.]+\u00a0% in [0-9.:]+\u00a0(?:s|min)</h1>")
          .size(),
      1u);
}

TEST_F(Report, OfSeveralRunsTheBestAndTheFirstStandOut) {
  std::vector<std::string> runs{run()};
  for (const char* name : {"b", "c"}) {
    runs.push_back(own_ / name);
    fs::copy(run(), runs.back(), fs::copy_options::recursive);
  }
  const fs::path best = fs::path(runs[2]) / "metrics.jsonl";
  write_file(best, std::regex_replace(read_file(best), std::regex("\"test_accuracy\":[0-9.e-]+"),
                                      "\"test_accuracy\":0.9876"));
  const std::string html = page_of(runs);
  for (const auto& [name, color] : {std::pair{"run", "1"}, {"b", "7"}, {"c", "0"}}) {
    EXPECT_TRUE(holds(html, {"<i class=\"swatch c" + std::string(color) + "\"></i>" + name}));
    EXPECT_TRUE(
        holds(html, {"class=\"series c" + std::string(color) + "\" data-name=\"" + name + "\""}));
  }
}

TEST_F(Report, ShowsWhatTheSumsTookBesideWhatWasPredicted) {
  EXPECT_TRUE(holds(page_of({run()}), {" id=\"sync\"", "Predicted by the cost model."}));

  const fs::path copy = copy_of_run();
  nlohmann::json record = nlohmann::json::parse(read_file(copy / "run.json"));
  record["run"]["machines"] = "rank 0 is on a, rank 1 is on b";
  const auto bucket = [](const char* name, int kib, double predicted, double taken) {
    return nlohmann::json{{"name", name},
                          {"strategy", "ring"},
                          {"bytes", 1024 * kib},
                          {"predicted_seconds", predicted},
                          {"taken_seconds", taken}};
  };
  record["sync"] = {
      {"predicted_from", "tune"},
      {"waited_seconds", 0.0125},
      {"buckets", {bucket("first", 1024, 0.008, 0.01), bucket("last", 512, 0.004, 0.005)}}};
  write_file(copy / "run.json", record.dump());
  EXPECT_TRUE(holds(
      page_of({copy}),
      {"2 replicas: rank 0 is on a, rank 1 is on b. Taken: ", "by what ringlet tune measured.",
       "waited 12.500 ms a step",
       "<tr><td>first</td><td>ring</td><td>1024.0</td><td>8.000</td><td>10.000</td><td>104.9</td>",
       "<tr><td>a step</td><td></td><td>1536.0</td><td>12.000</td><td>15.000</td><td>104.9</td>"}));

  record.erase("sync");  // as of one replica
  write_file(copy / "run.json", record.dump());
  EXPECT_FALSE(has_id(page_of({copy}), "sync"));
}

TEST_F(Report, ShowsWhatDiffersFromTheDefaultsAndFoldsTheRest) {
  const std::string html = page_of({run()});
  const std::string table = html.substr(html.find("id=\"settings\""));
  const std::string settings = table.substr(0, table.find("</table>"));
  EXPECT_TRUE(holds(settings, {"<td>epochs</td><td class=\"changed\">3</td><td>6</td>",
                               "<td>batch-size</td><td class=\"changed\">64</td><td>128</td>",
                               "<td>replicas</td><td class=\"changed\">2</td><td>1</td>"}));
  for (const char* usual : {"<td>lr<", "<td>model<", "<td>out<", "<td>momentum<"}) {
    EXPECT_EQ(settings.find(usual), settings.npos) << usual;
  }
  const std::size_t whole = html.find("<pre>");
  ASSERT_NE(whole, html.npos);
  EXPECT_LT(html.rfind("<details>", whole), whole);
  EXPECT_GT(html.find("</details>", whole), whole);
}

TEST_F(Report, MarksWhatThePicturesChose) {
  const TemporaryDirectory folder;
  write_picture_folder(folder / "set", 6, 2);
  const std::string out = folder / "chosen";
  const Arguments train{"train", "--data", (folder / "set").string(), "--epochs", "1",
                        "--out", out};
  ASSERT_TRUE(succeeds(ringlet(train + Arguments{"--max-steps", "0"})));
  const std::string line =
      "\n# chosen by the pictures: augment, batch-size, image-size, label-smoothing, lr, model\n";
  EXPECT_TRUE(holds(read_file(out + "/config.toml"), {line}));
  ASSERT_TRUE(succeeds(ringlet({"train", "--resume", out})));
  EXPECT_TRUE(holds(read_file(out + "/config.toml"), {line}));
  const std::string html = page_of({out});
  EXPECT_TRUE(
      holds(html, {"<td>batch-size</td><td class=\"changed\">32 (chosen by the pictures)</td>",
                   "<td>epochs</td><td class=\"changed\">1</td>"}));
}

TEST_F(Report, OfAModelThatIsNotKnownShowsNoDifferences) {
  const fs::path other = copy_of_run();
  write_file(other / "run.json", std::regex_replace(read_file(other / "run.json"),
                                                    std::regex("\"mlp\""), "\"of-mine\""));
  const std::string html = page_of({other.string()});
  EXPECT_FALSE(has_id(html, "settings"));
  EXPECT_TRUE(holds(html, {"The whole configuration"}));
}

TEST_F(Report, ARunThatHasNotEndedIsShownByItsState) {
  const fs::path copy = copy_of_run();
  fs::remove(copy / "model.safetensors");
  const std::string lines = read_file(copy / "metrics.jsonl");
  const std::size_t cut = lines.find('\n', lines.size() / 2) - 3;  // within a line
  write_file(copy / "metrics.jsonl", lines.substr(0, cut));
  const std::string html = page_of({copy.string()});
  EXPECT_TRUE(holds(html, {"stopped after step ", "the last line breaks off"}));
  // One accuracy, with its epoch, and whose answers the images have.
  const auto epoch = matches(html, "Test accuracy, epoch ([0-9]+)<");
  ASSERT_EQ(epoch.size(), 1U);
  EXPECT_EQ(matches(html, "<h1>[^<]*\u00a0% (after epoch " + epoch[0] + ", in) ").size(), 1U);
  EXPECT_EQ(html.find("Best accuracy, epoch " + epoch[0] + "<"), std::string::npos);
  EXPECT_TRUE(holds(html, {"answered right by the weights of its last state, after step 12."}));
  EXPECT_TRUE(has_id(html, "confusion"));
}

TEST_F(Report, SaysWhatItCouldNotHave) {
  const fs::path copy = copy_of_run();
  fs::remove(copy / "run.json");
  fs::remove(copy / "config.toml");
  const std::string html = page_of({copy.string()});
  EXPECT_TRUE(has_id(html, "no-test"));
  EXPECT_TRUE(has_id(html, "train-loss"));
  EXPECT_TRUE(holds(html, {"run.json is missing", "Not known here: ", "weight_decay"}));
  fs::remove_all(copy / "state");
  fs::remove(copy / "model.safetensors");
  EXPECT_TRUE(holds(page_of({copy.string()}), {"holds neither model.safetensors nor a state"}));
}

TEST_F(Report, NamesAreTextAndNotMarkup) {
  const fs::path odd = own_ / "<b>&\"run'";
  fs::copy(run(), odd, fs::copy_options::recursive);
  const std::string html = page_of({odd.string(), run()});
  EXPECT_EQ(html.find("<b>&\""), std::string::npos);
  EXPECT_TRUE(holds(html, {"&lt;b&gt;&amp;&quot;run&#39;"}));
}

TEST_F(Report, WhatIsNoRunIsSaidInOneLine) {
  const std::string nothing = own_ / "nothing";
  EXPECT_TRUE(
      fails_with(1, ringlet({"report", nothing, "--out", page()}), {nothing, "not a folder"}));
  fs::create_directory(nothing);
  EXPECT_TRUE(fails_with(1, ringlet({"report", nothing, "--out", page()}),
                         {nothing, "holds no metrics.jsonl", "--out of a run"}));
  write_file(fs::path(nothing) / "metrics.jsonl", "{\"kind\":\"step\"}\n");
  EXPECT_TRUE(fails_with(1, ringlet({"report", nothing, "--out", page()}),
                         {"metrics.jsonl: line 1", "'epoch'"}));
  EXPECT_FALSE(fs::exists(page()));
  EXPECT_TRUE(fails_with(2, ringlet({"report"}), {"RUN"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(Arguments{"report"} + Arguments(9, run())), {"8 runs at most"}));
}

TEST_F(Report, APageThatIsThereStays) {
  write_file(page(), "mine");
  EXPECT_TRUE(fails_with(2, ringlet({"report", run(), "--out", page()}), {page(), "--force"}));
  EXPECT_EQ(read_file(page()), "mine");
}

}  // namespace
}  // namespace ringlet::testing
