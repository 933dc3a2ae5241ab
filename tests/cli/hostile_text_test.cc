// Text that is made to harm: escapes that command a terminal, line feeds that begin a false
// message, letters that turn what follows, bytes that are no UTF-8, a megabyte. Whatever brings it,
// a flag, a variable, a file's name or a file's content, every command shows it escaped.
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// As UTF-8, so that JSON may hold it. No '/': it is a name of files too.
const std::string kText =
    "a\x1b[31m\a\nringlet: error: b\r\x7f\xC2\x9B"
    "31m\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\xA8z";
const std::string kBytes = kText + "\xFF\xC0\x8A";

/// Whether `text` may go to a terminal: UTF-8 (which the JSON library checks) without a control
/// character but line feeds, and without what turns or ends lines.
::testing::AssertionResult is_printable(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception& error) {
    return ::testing::AssertionFailure() << error.what() << " in: " << text;
  }
  for (const char c : text) {
    if ((c >= 0 && c < ' ' && c != '\n') || c == '\x7f')
      return ::testing::AssertionFailure() << "a control character in: " << text;
  }
  for (const char* hidden : {"\xC2\x9B", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x80\xA8"}) {
    if (text.find(hidden) != text.npos)
      return ::testing::AssertionFailure() << "a hidden character in: " << text;
  }
  return ::testing::AssertionSuccess();
}

/// Each line of stderr is a message of its own and of a bearable length.
void expect_messages(const std::string& err, std::ptrdiff_t errors) {
  std::istringstream lines(err);
  std::ptrdiff_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    found += line.starts_with("ringlet: error: ") ? 1 : 0;
    EXPECT_TRUE(line.starts_with("ringlet: error: ") || line.starts_with("ringlet: warning: "))
        << line;
    EXPECT_LE(line.size(), 4100u) << line.substr(0, 200);
  }
  EXPECT_EQ(found, errors) << err;
}

void expect_well_told(const Outcome& outcome) {
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_GE(outcome.code, 0);
  EXPECT_TRUE(is_printable(outcome.out));
  EXPECT_TRUE(is_printable(outcome.err));
  expect_messages(outcome.err, outcome.code == 0 ? 0 : 1);
}

void expect_refused(const Arguments& arguments, const ProgramOptions& options = {}) {
  SCOPED_TRACE(::testing::PrintToString(arguments));
  const Outcome outcome = ringlet(arguments, options);
  EXPECT_NE(outcome.code, 0);
  expect_well_told(outcome);
}

std::string safetensors(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 4; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

TEST(HostileFlags, AreShownEscaped) {
  expect_refused({kBytes});
  expect_refused({"bench", kBytes});
  for (const Arguments& command : all_commands()) {
    expect_refused(command + Arguments{"--" + kBytes});
  }
  for (const char* flag :
       {"--model", "--data", "--data-dir", "--sync", "--transport", "--epochs", "--lr",
        "--schedule", "--device", "--devices", "--config", "--init", "--resume"}) {
    const bool of_data = std::string(flag) == "--data-dir";
    expect_refused(quick_train(of_data ? Arguments{flag, kBytes, "--data", "fashion-mnist"}
                                       : Arguments{flag, kBytes}));
  }
  expect_refused({"eval", "--checkpoint", kBytes});
  expect_refused({"predict", "--checkpoint", kBytes, kBytes});
  expect_refused({"export", "--checkpoint", kBytes, "--onnx", "o.onnx"});
  expect_refused({"report", kBytes});
  expect_refused({"compare", kBytes, kBytes});
  expect_refused({"inspect", kBytes});
  expect_refused({"completion", kBytes});
  expect_refused({"bench", "all-reduce", "--begin", kBytes});
  expect_refused({"bench", "all-reduce", "--no-measure", "--with", kBytes});
}

TEST(HostileFlags, OfAMegabyteAreCut) {
  expect_refused({"train", "--model", std::string(100'000, 'x')});
  expect_refused({"inspect", std::string(100'000, 'x')});
}

TEST(HostileVariables, AreShownEscaped) {
  for (const char* name : {"RINGLET_MODEL", "RINGLET_EPOCHS", "RINGLET_EXACT", "RINGLET_CONFIG",
                           "RINGLET_ISA", "RINGLET_INIT"}) {
    expect_refused({"train", "--data", "synthetic", "--synthetic-train", "64"},
                   {.environment = {{name, kBytes}}});
  }
  expect_refused(quick_train({"--processes"}), {.environment = {{"RANK", kBytes}}});
  const Outcome outcome =
      ringlet(quick_train({"--init", "/no/such"}), {.environment = {{"RINGLET_EPOCH\x1b", "1"}}});
  EXPECT_TRUE(holds(outcome.err, {"ringlet: warning: ", "RINGLET_EPOCH\\x1b"}));
  expect_well_told(outcome);
}

/// A run of two steps, and files beside it.
class HostileFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", path("run")}))));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string file(const std::string& name, const std::string& bytes) {
    write_file(path(name), bytes);
    return path(name);
  }
  /// A copy of the run's folder in which `name` holds other bytes.
  static std::string run_with(const std::string& name, const std::string& bytes) {
    fs::remove_all(path("copy"));
    fs::copy(path("run"), path("copy"), fs::copy_options::recursive);
    write_file(path("copy/" + name), bytes);
    return path("copy");
  }
  /// The run's model with another text in its metadata.
  static std::string model_with(const char* key, const std::string& text) {
    const std::string bytes = read_file(path("run/state/model.safetensors"));
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    auto header = nlohmann::ordered_json::parse(bytes.substr(sizeof length, length));
    header["__metadata__"][key] = text;
    return file("model", safetensors(header.dump(), bytes.substr(sizeof length + length)));
  }
  static Outcome report(const std::string& run, std::string& page) {
    const Outcome outcome = ringlet({"report", run, "--out", path("page.html"), "--force"});
    page = read_file(path("page.html"));
    return outcome;
  }

  static std::unique_ptr<TemporaryDirectory> folder_;
};

std::unique_ptr<TemporaryDirectory> HostileFiles::folder_;

TEST_F(HostileFiles, OfEveryKindAreRefusedInOneLine) {
  const std::string text = quoted(kText), huge = quoted(std::string(1 << 20, 'n'));
  const std::string scalar = R"("dtype":"F32","shape":[],"data_offsets":[0,4])";
  for (const std::string& header :
       {"{" + kBytes, "{\"" + kBytes + "\":1}", "{" + text + ":1}", "{" + huge + ":1}",
        "{\"a\":{\"dtype\":" + text + ",\"shape\":[],\"data_offsets\":[0,4]}}",
        "{" + text + ":{" + scalar + "}}", R"({"__metadata__":{)" + text + ":7}}"}) {
    const std::string weights = file("w", safetensors(header, "1234"));
    expect_refused(quick_train({"--init", weights}));
    expect_refused({"eval", "--checkpoint", weights, "--data", "synthetic"});
  }
  for (const char* key : {"ringlet.model", "ringlet.mean", "ringlet.classes"}) {
    expect_refused({"eval", "--checkpoint", model_with(key, kText)});
  }
  const std::string step = R"({"kind":"step","epoch":1,"step":1,"loss":2,"lr":1,"samples":8})";
  for (const std::string& lines : {step + "\n{" + kBytes + "\n\n", step + "\n" + text + "\n",
                                   step + "\n{\"kind\":\"step\",\"epoch\":" + text + "}\n"}) {
    expect_refused({"inspect", file("m", lines)});
    expect_refused({"report", run_with("metrics.jsonl", lines), "--out", path("p")});
  }
  expect_refused(
      {"inspect", file("t", "{\"traceEvents\":[{\"ph\":\"X\",\"name\":" + text + "}]}")});
  expect_refused({"inspect", file("t", "{\"traceEvents\":[{" + kBytes)});
  expect_refused({"inspect", file("u", kBytes)});
  for (const std::string& state :
       {kBytes, "{" + text + ":1}", R"({"format":)" + text + ",\"data_hash\":1,\"recipe\":2}"}) {
    expect_refused({"train", "--resume", run_with("state/state.json", state)});
  }
  for (const std::string& toml : {kBytes, text + " = 1\n", "model = " + text + "\n",
                                  "devices = [" + text + "]\n", "[" + text + "]\n"}) {
    expect_refused(quick_train({"--config", file("c.toml", toml)}));
  }
  for (const std::string& rows : {kBytes, "{\"rows\":[{\"engine\":7," + text + ":1}]}"}) {
    expect_refused({"bench", "all-reduce", "--no-measure", "--with", file("rows", rows)});
    expect_refused({"compare", file("rows", rows), path("run")});
  }
  for (const std::string& picture : {kBytes, "P5 " + kBytes, "\x89PNG\r\n\x1a\n" + kBytes}) {
    expect_refused({"predict", "--checkpoint", path("run"), file("p.png", picture)});
  }
}

TEST_F(HostileFiles, ThatAreReadAreShownEscaped) {
  const std::string name = "{" + quoted(kText) +
                           R"(:{"dtype":"F32","shape":[],"data_offsets":[0,4]},)" +
                           R"("__metadata__":{)" + quoted(kText) + ":" + quoted(kText) + "}}";
  const std::string trace = R"({"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":)" + quoted(kText) +
                            ",\"cat\":" + quoted(kText) + "}]}";
  for (const std::string& content : {safetensors(name, "1234"), trace}) {
    for (const char* flag : {"--json", "--show=0"}) {
      const Outcome outcome = ringlet({"inspect", flag, file("f", content)});
      EXPECT_TRUE(succeeds(outcome));
      EXPECT_TRUE(holds(outcome.out, {"31m"}));
      expect_well_told(outcome);
    }
  }
  const std::string rows =
      R"({"engine":)" + quoted(kText) + R"(,"ranks_as":"threads","transport":)" + quoted(kText) +
      R"(,"strategy":)" + quoted(kText) +
      R"(,"ranks":2,"bytes":4,"count":1,"type":"f32","op":"sum","in_place":true,"iterations":1,)" +
      R"("median_us":1,"min_us":1,"p99_us":1,"wrong":0})";
  const Outcome outcome = ringlet({"bench", "all-reduce", "--no-measure", "--with",
                                   file("rows", rows), "--report", path("rows.html")});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"31m"}));
  expect_well_told(outcome);
  EXPECT_TRUE(is_printable(read_file(path("rows.html"))));
}

/// Where a page would begin an element, or an attribute, that its writer has not written.
constexpr const char* kMarkup = "x\"'><img src=x onerror=alert(1)>";

bool has_foreign_markup(const std::string& page) {
  return page.find("<img src=x") != page.npos || page.find("\"'>") != page.npos;
}

/// `document` with one text after another replaced by markup, for each of them.
void for_each_text(nlohmann::json document,
                   const std::function<void(const nlohmann::json& changed)>& visit) {
  const nlohmann::json flat = document.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (!value.is_string()) continue;
    SCOPED_TRACE(pointer);
    nlohmann::json changed = document;
    changed.at(nlohmann::json::json_pointer(pointer)) = kMarkup;
    visit(changed);
  }
}

TEST_F(HostileFiles, WithMarkupInAnyTextOfAMeasurementAreShownEscaped) {
  const auto row = [](const char* engine, double median) {
    return nlohmann::json{{"engine", engine},
                          {"ranks_as", "threads"},
                          {"transport", "local"},
                          {"strategy", "ring"},
                          {"ranks", 2},
                          {"bytes", 4096},
                          {"count", 1024},
                          {"type", "f32"},
                          {"op", "sum"},
                          {"level", "all"},
                          {"in_place", true},
                          {"iterations", 1},
                          {"median_us", median},
                          {"min_us", median},
                          {"p99_us", median},
                          {"hashes", {"a", "b"}},
                          {"wrong", 0}};
  };
  const nlohmann::json rates = {{"memcpy_gbs", 1e308}, {"streaming_gbs", 1e308}};
  const nlohmann::json document = {
      {"machine",
       {{"processor", "p"},
        {"cores", 2},
        {"instruction_set", "avx2"},
        {"load_average", {1e308}},
        {"core_distances", {{{"nanoseconds", 1e308}, {"word", "near"}}}},
        {"copy", {{"one_thread", rates}, {"all_threads", rates}}},
        {"ringlet", "0.1"},
        {"started", "now"}}},
      {"rows", {row("ringlet", 1e-320), row("gloo", 1e308), row("gloo", 3)}}};
  int texts = 0;
  for_each_text(document, [&](const nlohmann::json& changed) {
    ++texts;
    const Outcome outcome = ringlet({"bench", "all-reduce", "--no-measure", "--force", "--with",
                                     file("rows", changed.dump()), "--report", path("rows.html")});
    expect_well_told(outcome);  // the ranks' results differ, which is an error behind the page
    const std::string page = read_file(path("rows.html"));
    EXPECT_TRUE(holds(page, {"<h2>All figures</h2>"}));
    EXPECT_FALSE(has_foreign_markup(page));
    for (const char* odd : {"inf ", "inf<", "inf\"", "nan"}) {
      EXPECT_EQ(page.substr(page.find("<body>")).find(odd), page.npos) << odd;
    }
  });
  EXPECT_GE(texts, 25);
}

TEST_F(HostileFiles, WithMarkupInAnyTextOfARunAreShownEscaped) {
  nlohmann::json record = parse_json(read_file(path("run/run.json")));
  record["machine"]["gpus"] = {{{"name", "g"}, {"device", "cuda:0"}}};
  record["sync"] = {{"predicted_from", "tune"},
                    {"buckets", {{{"name", "bucket 0"}, {"strategy", "ring"}, {"bytes", 4}}}}};
  record["run"]["machines"] = "a and b";
  int texts = 0;
  std::string page;
  for_each_text(record, [&](const nlohmann::json& changed) {
    ++texts;
    expect_well_told(report(run_with("run.json", changed.dump()), page));
    EXPECT_TRUE(holds(page, {"<h2>Configuration and machine</h2>"}));
    EXPECT_FALSE(has_foreign_markup(page));
  });
  EXPECT_GE(texts, 10);
}

TEST_F(HostileFiles, OfARunAreShownEscapedOnItsPage) {
  std::string page;
  const std::string record = R"({"ringlet":)" + quoted(kText) + R"(,"data":{"name":)" +
                             quoted(kText) + R"(},"model":{"name":)" + quoted(kText) + "}}";
  expect_well_told(report(run_with("run.json", record), page));
  EXPECT_TRUE(holds(page, {"31m"}));
  EXPECT_TRUE(is_printable(page));
  expect_well_told(report(run_with("config.toml", "# two\n# lines " + kBytes), page));
  EXPECT_TRUE(holds(page, {"<pre># two\n# lines a\\x1b[31m"}));
  EXPECT_TRUE(is_printable(page));
}

TEST_F(HostileFiles, MayHaveHostileNames) {
  const std::string run = path("r" + kBytes);
  const Outcome trained = ringlet(quick_train({"--out", run}));
  EXPECT_TRUE(succeeds(trained));
  expect_well_told(trained);
  const Outcome shown = ringlet(quick_train({"--out", path("x"), "--init", run, "--print-config"}));
  EXPECT_TRUE(succeeds(shown));
  expect_well_told(shown);
  const std::string picture = file("p" + kBytes + ".pgm", "P5 1 1 255\n7");
  for (const Arguments& arguments : std::vector<Arguments>{
           {"eval", "--checkpoint", run, "--synthetic-train", "64", "--synthetic-test", "64"},
           {"predict", "--checkpoint", run, picture},
           {"predict", "--checkpoint", run, picture, "--json"},
           {"export", "--checkpoint", run, "--onnx", path("o" + kBytes)},
           {"inspect", run},
           {"inspect", run, "--json"},
           {"report", run, "--out", path("page" + kBytes)}}) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = ringlet(arguments);
    EXPECT_TRUE(succeeds(outcome));
    expect_well_told(outcome);
  }
  EXPECT_TRUE(is_printable(read_file(path("page" + kBytes))));
}

TEST_F(HostileFiles, AreNamedForAShellWhereARunStops) {
  const std::string run = path("s\x1b' \n\xFF");
  Program program(quick_train({"--out", run, "--epochs", "1000000"}), {});
  ASSERT_TRUE(program.wait_for("    1   "));
  program.send(SIGTERM);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_TRUE(is_printable(outcome.out));
  EXPECT_TRUE(holds(outcome.out, {"--resume $'", R"(s\x1b\' \n\xff')"}));
}

TEST_F(HostileFiles, NameClassesThatAreShownEscaped) {
  std::vector<std::string> names(10, "Dress");
  names[3] = kText;
  const std::string model = model_with("ringlet.classes", nlohmann::json(names).dump());
  const std::string picture = file("p.pgm", "P5 1 1 255\n7");
  const Outcome outcome = ringlet({"predict", "--checkpoint", model, picture, "--top", "10"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"a\\x1b[31m"}));
  expect_well_told(outcome);
}

}  // namespace
}  // namespace ringlet::testing
