// `ringlet pipeline`: its table, its answer, and its file.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "base/files/json_text.h"
#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

Outcome pipeline(const Arguments& flags) {
  return ringlet(Arguments{"pipeline", "--model", "resnet20"} + flags);
}

TEST(Pipeline, SaysWhatComesOfACut) {
  const TemporaryDirectory folder;
  const std::string file = folder / "pipeline.json";
  const Outcome outcome =
      pipeline({"--stages", "3", "--balance", "planned", "--micro-batches", "4", "--json", file});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"resnet20, 3 x 32 x 32, batch 128, f32, lanes, costs planned\n",
                                  "  % F / B  ", "\n2      ", " .. fc ",
                                  "1f1b, 4 micro-batches of 32: bubble ", "x of one device; naive ",
                                  "\nall stages together fit this machine's memory: "}));
  const nlohmann::json json = json_or_discarded(read_file(file));
  ASSERT_EQ(json.at("stages").size(), 3U);
  EXPECT_EQ(json.at("fits"), true);
  EXPECT_EQ(json.at("cuts").size(), 2U);
  EXPECT_GT(json.at("speedup").get<double>(), 1.5);
  EXPECT_TRUE(fails_with(2, pipeline({"--balance", "planned", "--json", file}), {file, "--force"}));
}

TEST(Pipeline, MeasuresUnits) {
  const TemporaryDirectory folder;
  const std::string file = folder / "pipeline.json";
  const Outcome outcome = pipeline({"--stages", "conv1..layer1,layer2..fc", "--pipeline", "gpipe",
                                    "--batch-size", "32", "--link", "1G", "--json", file});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"costs measured on cpu:0, 1 thread", "  ms F / B  ",
                                  "gpipe, 2 micro-batches of 16: bubble ", " ms a step; naive "}));
  const nlohmann::json json = json_or_discarded(read_file(file));
  EXPECT_EQ(json.at("stages")[0].at("held"), 2);
  EXPECT_GT(json.at("stages")[1].at("backward_seconds").get<double>(), 0);
  const auto& cut = json.at("cuts")[0];
  EXPECT_NEAR(cut.at("activation_seconds").get<double>(),
              1e-9 * cut.at("activation_bytes").get<double>(), 1e-9);
}

TEST(Pipeline, CountsWhatIsRecomputed) {
  const TemporaryDirectory folder;
  const auto forecast = [&](const std::string& kept) {
    const std::string file = folder / (kept + ".json");
    EXPECT_TRUE(succeeds(pipeline({"--stages", "2", "--batch-size", "64", "--pipeline", "gpipe",
                                   "--balance", "planned", "--recompute", kept, "--json", file})));
    return json_or_discarded(read_file(file));
  };
  const nlohmann::json all = forecast("none"), inputs = forecast("stage");
  EXPECT_LT(inputs.at("speedup").get<double>(), all.at("speedup").get<double>());
  for (int stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(inputs.at("stages")[stage].at("held"), 4);
    EXPECT_LT(inputs.at("stages")[stage].at("bytes").get<double>(),
              all.at("stages")[stage].at("bytes").get<double>());
  }
}

// Of the last stage, each replica's share of the rows.
TEST(Pipeline, CountsTheCentresOfALoss) {
  const TemporaryDirectory folder;
  const auto last_of = [&](const Arguments& flags) {
    const std::string file = folder / "pipeline.json";
    const Outcome outcome =
        pipeline(Arguments{"--stages", "conv1..layer1,layer2..fc", "--batch-size", "64",
                           "--balance", "planned", "--json", file, "--force"} +
                 flags);
    EXPECT_TRUE(succeeds(outcome));
    return std::pair(outcome.out, json_or_discarded(read_file(file)).at("stages")[1]);
  };
  const Arguments loss{"--loss", "arcface", "--embedding-size", "32", "--classes", "5000"};
  const auto [usual, logits] = last_of({"--classes", "32"});
  const auto [text, all] = last_of(loss);
  const auto half = last_of(loss + Arguments{"--replicas", "2"}).second;
  EXPECT_TRUE(holds(text, {"resnet20, 3 x 32 x 32, arcface of 5000 centres of 32, batch 64, "}));
  const auto numbers = [](const nlohmann::json& stage, const char* key) {
    return stage.at(key).get<double>();
  };
  constexpr double kCentres = 5000 * 32, kBytes = 4 * 3;  // value, gradient and velocity
  EXPECT_EQ(numbers(all, "parameters"), numbers(logits, "parameters") + kCentres);
  const double standing = numbers(all, "standing_bytes");
  EXPECT_NEAR(standing - numbers(logits, "standing_bytes"), kBytes * kCentres, 1024);
  EXPECT_NEAR(standing - numbers(half, "standing_bytes"), kBytes * kCentres / 2, 1024);
  EXPECT_TRUE(fails_with(2, pipeline({"--embedding-size", "32", "--balance", "planned"}),
                         {"--embedding-size", "--loss"}));
}

TEST(Pipeline, TakesDevicesThatAreNotThere) {
  const Outcome outcome = pipeline({"--stages", "2", "--replicas", "2", "--device", "cuda",
                                    "--balance", "planned", "--memory", "4G"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {", 2 replicas, f32, nchw, ", "  cuda:0, cuda:1  ",
                                  "  cuda:2, cuda:3  ", "8 micro-batches of 8: ",
                                  "\neach stage fits its device: stage 0 fills most of it, "}));
}

TEST(Pipeline, SaysThatAStageDoesNotFit) {
  const Outcome outcome =
      pipeline({"--stages", "conv1..layer1,layer2..fc", "--balance", "planned", "--memory", "4M"});
  EXPECT_TRUE(fails_with(1, outcome,
                         {"does not fit: stage 0 (conv1 .. layer1) needs ",
                          " and its device has 4 MiB; ", "take more stages"}));
  EXPECT_TRUE(holds(outcome.out, {"conv1 .. layer1"}));
}

/// What reads badly: texts over each other, bars beyond the drawing, a page that is wider than its
/// window.
constexpr const char* kProbe = R"js(
  {
    const svg = document.querySelector('svg.pipeline');
    const area = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
    const over = texts.filter((a, i) => texts.some((b, k) => k < i &&
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4));
    const out = [...svg.querySelectorAll('rect, text')].map((one) => one.getBoundingClientRect())
        .filter((box) => box.left < area.left - 1 || box.right > area.right + 6 ||
            box.bottom > area.bottom + 1);
    const data = document.documentElement.dataset;
    data.bars = svg.querySelectorAll('rect.f, rect.b').length;
    data.over = over.length;
    data.out = out.length;
    data.wide = document.documentElement.scrollWidth > innerWidth;
    data.rows = document.querySelectorAll('#stages tbody tr').length;
  }
)js";

TEST(Pipeline, WritesAPageThatABrowserShows) {
  const TemporaryDirectory folder;
  const std::string page = folder / "page.html";
  const Outcome outcome =
      pipeline({"--stages", "4", "--balance", "planned", "--micro-batches", "8", "--out", page});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"wrote " + page + "; open it in a browser\n"}));
  const std::string html = read_file(page);
  EXPECT_TRUE(holds(html, {"<h1>4 stages by 1f1b: ", "percent of the step",
                           "3 of 11 parts of the time would be bubble, 27", "1f1b (drawn)",
                           "With stages that are equally fast it takes as long as gpipe"}));
  EXPECT_TRUE(std::regex_search(
      html, std::regex("<dt>Micro-batches</dt><dd>8 <small>[0-9]+ samples (each|at most)<")));
  EXPECT_EQ(html.find("src=\"http"), std::string::npos);
  for (const int width : {1200, 420}) {
    const Opened opened = open_in_browser(page, kProbe, width);
    if (!opened.could) GTEST_SKIP() << opened.why;
    EXPECT_TRUE(holds(opened.dom, {"data-bars=\"64\"", "data-over=\"0\"", "data-out=\"0\"",
                                   "data-wide=\"false\"", "data-rows=\"4\""}))
        << width;
    EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos);
  }
}

/// Two stages by naive, a step of two micro-batches.
std::string traced_step() {
  std::string events;
  const auto add = [&](const std::string& name, int begin, int duration, int rank) {
    events += (events.empty() ? "" : ",\n") + std::string(R"({"name":")") + name +
              R"(","cat":"pipeline","ph":"X","ts":)" + std::to_string(begin) + R"(,"dur":)" +
              std::to_string(duration) + R"(,"pid":)" + std::to_string(rank) + R"(,"tid":1})";
  };
  for (int k = 0; k < 2; ++k) {
    const std::string number = std::to_string(k);
    const int begin = 1000 * k;
    add("F" + number, begin, 200, 0);
    add("send a" + number + " to 1", begin + 200, 20, 0);
    add("receive g" + number + " from 1", begin + 220, 500, 0);
    add("B" + number, begin + 720, 280, 0);
    add("receive a" + number + " from 0", begin - (k > 0 ? 280 : 0), 220 + (k > 0 ? 280 : 0), 1);
    add("F" + number, begin + 220, 200, 1);
    add("B" + number, begin + 420, 280, 1);
    add("send g" + number + " to 0", begin + 700, 20, 1);
  }
  add("sync", 2000, 50, 0);
  add("sync", 1720, 50, 1);
  return R"({"traceEvents":[)" + events + "]}";
}

TEST(Pipeline, ShowsAStepOfARun) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "t.json", page = folder / "page.html",
                    json = folder / "steps.json";
  write_file(trace, traced_step());
  const Outcome outcome = ringlet(
      {"pipeline", "--from", trace, "--out", page, "--json", json, "--still", folder / "step.svg"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"stage  rank  ms F / B", "step 0 of 1, 2 micro-batches: 2.05 ms",
                                  "wrote " + page}));
  EXPECT_TRUE(holds(read_file(page), {"2 stages of a run: a step of 2.05 ms"}));
  EXPECT_TRUE(holds(read_file(folder / "step.svg"), {"step 0 of 1, 2 micro-batches"}));
  const nlohmann::json told = json_or_discarded(read_file(json));
  EXPECT_NEAR(told.at("stages")[1].at("busy_seconds").get<double>(), 960e-6, 1e-9);
  EXPECT_TRUE(fails_with(2, ringlet({"pipeline", "--from", trace, "--step", "1"}),
                         {"--step 1: the trace has 1 step, which count from 0"}));
  EXPECT_TRUE(fails_with(2, ringlet({"pipeline", "--from", trace, "--stages", "2"}),
                         {"--from", "--stages"}));
}

// What `train --trace` writes is what `pipeline --from` reads: each action of each step.
TEST(Pipeline, ReadsTheTraceOfARun) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "trace.json", json = folder / "step.json";
  ASSERT_TRUE(succeeds(ringlet({"train",     "--model",           "lenet",   "--data",
                                "synthetic", "--synthetic-train", "256",     "--synthetic-test",
                                "8",         "--batch-size",      "64",      "--stages",
                                "2",         "--micro-batches",   "4",       "--epochs",
                                "1",         "--no-out",          "--trace", trace})));
  ASSERT_TRUE(succeeds(ringlet({"pipeline", "--from", trace, "--json", json})));
  const nlohmann::json step = json_or_discarded(read_file(json));
  EXPECT_EQ(step.at("stages").size(), 2U);
  EXPECT_EQ(step.at("micro_batches"), 4);
  EXPECT_EQ(step.at("steps").size(), 4U);
}

/// The pipeline's action, "send a0 to 1", in which an event of a trace lies.
std::string action_around(const nlohmann::json& events, const nlohmann::json& event) {
  for (const nlohmann::json& span : events) {
    if (span.value("cat", "") != "pipeline" || span.at("pid") != event.at("pid")) continue;
    const double begin = span.at("ts"), at = event.at("ts");
    if (begin <= at && at < begin + span.at("dur").get<double>()) return span.at("name");
  }
  return "";
}

/// Of "send g1 to 0, receive a2 from 0" the half that sends, or the one that receives.
std::string half_of(const std::string& action, const std::string& verb) {
  const auto begin = action.find(verb);
  if (begin == std::string::npos) return "";
  return action.substr(begin, action.find(',', begin) - begin);
}

// Perfetto draws an arrow from an event "s" to the "f" with the same id, each at the span that it
// lies in.
TEST(Pipeline, HasAnArrowForEachMessageInTheTraceOfARun) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "trace.json", other = folder / "trace.p1.json",
                    all = folder / "all.json";
  ASSERT_TRUE(succeeds(ringlet({"train",       "--model",
                                "lenet",       "--data",
                                "synthetic",   "--synthetic-train",
                                "128",         "--synthetic-test",
                                "8",           "--batch-size",
                                "64",          "--stages",
                                "2",           "--micro-batches",
                                "4",           "--epochs",
                                "1",           "--no-out",
                                "--processes", "2",
                                "--trace",     trace})));
  ASSERT_TRUE(succeeds(ringlet({"trace", "merge", trace, other, "--out", all})));
  const nlohmann::json events = json_or_discarded(read_file(all)).at("traceEvents");
  std::map<std::string, std::string> sent, received;  // by id
  for (const nlohmann::json& event : events) {
    const std::string phase = event.value("ph", "");
    if (phase != "s" && phase != "f") continue;
    const bool sends = phase == "s";
    const std::string half = half_of(action_around(events, event), sends ? "send" : "receive");
    if (!half.empty()) (sends ? sent : received)[event.at("id")] = half;
  }
  EXPECT_EQ(sent.size(), 16U);  // 2 steps of 4 activations and 4 gradients
  ASSERT_EQ(received.size(), sent.size());
  for (const auto& [id, action] : sent) {  // "send a0 to 1": "receive a0 from 0"
    const std::string what = action.substr(5, 2);
    EXPECT_EQ(received[id], fmt::format("receive {} from {}", what, what[0] == 'a' ? 0 : 1))
        << id << ": " << action;
  }
  EXPECT_TRUE(succeeds(ringlet({"pipeline", "--from", all})));
  EXPECT_TRUE(succeeds(ringlet({"inspect", all})));
}

TEST(TrainInStages, IsWhatItsFlagsAreFor) {
  for (const char* flag : {"--pipeline=gpipe", "--balance=planned", "--recompute=stage"}) {
    EXPECT_TRUE(fails_with(2, ringlet(quick_train({flag})), {"is for a model in several stages"}));
    EXPECT_TRUE(succeeds(ringlet(quick_train({flag, "--stages", "2", "--max-steps", "1"}))));
  }
  EXPECT_TRUE(succeeds(ringlet(quick_train({"--pipeline", "1f1b", "--max-steps", "1"}))));
}

TEST(TrainInStages, AreANumberOrOfLayersThatThereAre) {
  const auto with = [](const char* stages) {
    return ringlet(quick_train({"--stages", stages, "--max-steps", "1"}));
  };
  for (const char* name : {"x", "1e3", "2.5", " 2", "+2", "x..y"}) {
    EXPECT_TRUE(fails_with(2, with(name), {"there is no unit '"})) << name;
  }
  EXPECT_TRUE(fails_with(2, with("fc2..fc3"), {"no stage has flatten, fc1, relu1"}));
  for (const char* number : {"0", "-1", "1025", "99999999999"}) {
    EXPECT_TRUE(fails_with(2, with(number), {number, "a model is cut into 1 to 1024 stages"}));
  }
  EXPECT_TRUE(succeeds(with("flatten..fc3")));
}

TEST(TrainInStages, TakesFewerMicroBatchesOfFewSamples) {
  const Arguments stages{"--stages", "2", "--synthetic-train", "3", "--synthetic-test", "3"};
  const Outcome outcome = ringlet(quick_train(stages));
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_NE(outcome.out.find("2 by 1f1b, 3 micro-batches"), std::string::npos) << outcome.out;
  // Of three samples one of two replicas has two.
  const Outcome replicas = ringlet(quick_train(stages + Arguments{"--replicas", "2"}));
  EXPECT_TRUE(succeeds(replicas));
  EXPECT_NE(replicas.out.find("2 by 1f1b, 1 micro-batch"), std::string::npos) << replicas.out;
  EXPECT_TRUE(
      fails_with(2, ringlet(quick_train(stages + Arguments{"--micro-batches", "4"})),
                 {"--accumulate (--micro-batches) 4 is more than the 3 samples of a step"}));
}

// scripts/stills draws them; they are planned, and so alike on any machine.
TEST(Pipeline, DrawsThePicturesOfTheDocumentation) {
  const TemporaryDirectory folder;
  for (const char* schedule : {"naive", "gpipe", "1f1b"}) {
    const std::string file = folder / (std::string(schedule) + ".svg");
    ASSERT_TRUE(succeeds(
        ringlet({"pipeline", "--model", "resnet18-cifar", "--stages", "4", "--micro-batches", "8",
                 "--balance", "planned", "--pipeline", schedule, "--still", file})));
    const auto picture = checkout(std::string("docs/pictures/pipeline-") + schedule + ".svg");
    EXPECT_EQ(read_file(file), read_file(picture)) << "draw it anew with scripts/stills";
  }
}

}  // namespace
}  // namespace ringlet::testing
