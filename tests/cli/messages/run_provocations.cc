// Runs that cannot write, or whose models and files bring a message where they are read.
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/cli/messages/provocations.h"
#include "tests/support/picture_folder.h"
#include "tests/support/testdata.h"
#include "tests/support/webp.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// The head of a process's timeline.
std::string of_process(const std::string& number, const std::string& run = "1") {
  return R"({"displayTimeUnit":"ms","otherData":{"run":")" + run + R"(","process":)" + number +
         R"(,"processes":2,"host":"a","origin_ns":1,"clock":[[1,0,0]]},"traceEvents":[)" + "\n";
}

/// A picture that is shown to a model.
Provocation shown(const std::string& picture) {
  return {1, [=](const Stage& stage) {
            return ringlet({"predict", "--checkpoint", stage.run(), stage.file("p", picture)});
          }};
}
/// Serves a page on a port that has another server already.
Outcome follow_on_taken_port(const Stage& stage) {
  Program first({"report", stage.run(), "--follow"}, {});
  std::string out;
  EXPECT_TRUE(first.wait_until([&](const std::string& so_far) {
    out = so_far;
    return so_far.find("/ (Ctrl-C") != std::string::npos;
  }));
  const auto end = out.find("/ (Ctrl-C"), begin = out.rfind(':', end) + 1;
  return ringlet({"report", stage / "out", "--follow", "--port", out.substr(begin, end - begin)});
}
/// A JPEG of scans without content.
/// With a `side`, grey and square.
std::string jpeg_of_scans(int count, int side = 0) {
  std::string file = "\xff\xd8";
  const std::string sides{static_cast<char>(side >> 8), static_cast<char>(side)};
  if (side > 0) {
    file += std::string("\xff\xc0\0\x0b\x08", 5) + sides + sides + std::string("\1\1\x11\0", 4);
  }
  for (int i = 0; i < count; ++i) file += std::string("\xff\xda\0\x08\1\1\0\1\0\0", 10);
  return file + "\xff\xd9";
}
/// Runs `command` with the checkpoint of a run on drawn garments.
Outcome with_model(const Stage& stage, const char* command, const Arguments& more) {
  return ringlet(Arguments{command, "--checkpoint", stage.run()} + more);
}
/// The run's model in a file of its own, all bytes of its numbers being `byte`: NaN for 0xff, too
/// large to be added up for 0x7e.
std::string broken_model(const Stage& stage, char byte = '\x7e') {
  std::string bytes = read_file(stage.run() + "/model.safetensors");
  const std::size_t header = 8 + static_cast<unsigned char>(bytes[0]) +
                             (std::size_t{static_cast<unsigned char>(bytes[1])} << 8);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end(), byte);
  return stage.file("broken", bytes);
}

/// A run by a loss with a margin.
std::string run_with_margin(const Stage& stage) {
  return stage.run({"--loss", "arcface", "--embedding-size", "6"});
}
/// Starts from that run's centres, of which `change` makes others.
template <class Change>
Outcome start_from_centres(const Stage& stage, const char* size, Change change) {
  std::string bytes = read_file(run_with_margin(stage) + "/centres.safetensors");
  change(bytes);
  return ringlet(quick_train({"--loss", "arcface", "--embedding-size", size, "--init-centres",
                              stage.file("c.safetensors", bytes)}));
}
/// Starts from the centres in a folder: an index of ten rows, and `numbers` in a file of all, or of
/// the second half of `files` files.
Outcome start_from_files_of_rows(const Stage& stage, int files, const std::string& numbers) {
  const auto safetensors = [](const std::string& header, const std::string& data) {
    std::uint64_t length = header.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header + data;
  };
  fs::create_directory(stage / "rows");
  write_file(stage / "rows/index.safetensors",
             safetensors(R"({"__metadata__":{"ringlet.rows":"10"}} )", ""));
  if (files > 0) {
    const std::string name = std::to_string(files);
    write_file(stage / ("rows/000" + name + "-of-000" + name + ".safetensors"),
               safetensors(R"({"__metadata__":{"ringlet.first_row":"0"},"weight":{"dtype":"F32",)"
                           R"("shape":[10,6],"data_offsets":[0,240]}})",
                           numbers));
  }
  return ringlet(quick_train(
      {"--loss", "arcface", "--embedding-size", "6", "--init-centres", stage / "rows"}));
}
/// The last letter of `what` becomes another.
void spoil(std::string& bytes, const std::string& what, char by) {
  bytes[bytes.find(what) + what.size() - 1] = by;
}

Provocation inspected(const std::string& bytes) {
  return {1, [=](const Stage& stage) { return ringlet({"inspect", stage.file("f", bytes)}); }};
}

/// A timeline merged with process 0's.
Provocation merged(const std::string& bytes) {
  return {1, [=](const Stage& stage) {
            const std::string own = stage.file("t.json", of_process("0") + "]}\n");
            return ringlet({"trace", "merge", own, stage.file("f", bytes), "--out", stage / "all"});
          }};
}

/// A trace of two ranks that each send and receive in call 1. Those of rank 1 are `late` by so many
/// microseconds.
std::string two_ranks(int late = 0) {
  std::string text = "{\"traceEvents\":[";
  for (const int rank : {0, 1}) {
    const auto at = [&](int us) { return std::to_string(us + rank * late); };
    const std::string own = ",\"pid\":" + std::to_string(rank), other = std::to_string(1 - rank);
    text += rank == 0 ? "" : ",";
    text += R"({"ph":"X","cat":"collective","name":"sum","ts":)" + at(10);
    text += ",\"dur\":50" + own;
    text += R"(,"args":{"bytes":8,"call":1,"ranks":2,"type":"f32","reduce":"sum"}},)";
    text += R"({"ph":"X","cat":"exchange","name":"exchange","ts":)" + at(20);
    text += ",\"dur\":20" + own;
    text += R"(,"args":{"bytes":8,"call":1,"peer":)" + other;
    text += R"(,"from":)" + other;
    text += R"(,"out_at":0,"in_at":0,"in_bytes":8,"op":"add"}})";
  }
  return text + "]}";
}

/// The same with the first `what`, or all of them, replaced by `by`.
std::string two_ranks_with(const std::string& what, const std::string& by, bool all = false) {
  std::string text = two_ranks();
  auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  for (; at != std::string::npos; at = all ? text.find(what, at + by.size()) : std::string::npos) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// `outputs`: flags of files.
Provocation replayed(const std::string& trace, int code = 1, const Arguments& flags = {},
                     const Arguments& outputs = {"--json"}) {
  return {code, [=](const Stage& stage) {
            Arguments line = Arguments{"replay", stage.file("t.json", trace)} + flags;
            for (const std::string& output : outputs) line = line + Arguments{output, stage / "r"};
            return ringlet(line);
          }};
}

const std::string kStep = R"({"kind":"step","epoch":1,"step":1,"loss":2,"lr":1,"samples":8})";

}  // namespace

std::vector<Provocation> provocations_by_runs() {
  return {
      // What is written.
      {1,
       [](const Stage& stage) {
         return ringlet(quick_train({"--out", stage / "o"}), {.file_size_limit = 1000});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--out", stage.file("f", "") + "/o"});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--metrics", stage / "none/m"});
       }},
      {1,
       [](const Stage& stage) {
         return quick({"--metrics", stage / "."});
       }},
      {1,
       [](const Stage&) {
         return quick({"--metrics", "/dev/full"});
       }},
      {1,
       [](const Stage&) {
         return quick({"--trace", "/dev/null"});
       }},
      {1,
       [](const Stage& stage) {
         EXPECT_EQ(::mkfifo((stage / "pipe").c_str(), 0600), 0);
         return quick({"--metrics", stage / "pipe"});
       }},
      usage_of_train({"--metrics", "-"}),
      usage_of_train({"--trace", "-"}),
      {1,
       [](const Stage& stage) {
         fs::create_directory(stage / "o");
         fs::create_symlink(stage.file("notes", "the user's"), stage / "o/.ringlet.lock");
         return quick({"--out", stage / "o"});
       }},
      {1,
       [](const Stage& stage) {
         Program live(quick_train({"--epochs", "100000", "--lr", "0.001", "--out", stage / "o"}));
         EXPECT_TRUE(live.wait_for("epoch   train loss"));
         return quick({"--out", stage / "o", "--force"});
       }},
      {1, [](const Stage& stage) { return follow_on_taken_port(stage); }},
      {3,
       [](const Stage&) {
         return Program(ShellLine{built("bin/ringlet") + " --version > /dev/full"}).wait();
       }},
      // Models that are asked.
      usage({"predict", "--checkpoint", "a"}),
      usage({"predict", "--checkpoint", "a", "b", "--data", "synthetic"}),
      {2,
       [](const Stage& stage) {
         return with_model(stage, "eval", {"--model", "lenet"});
       }},
      {2, [](const Stage& stage) { return with_model(stage, "eval", {"--no-normalize"}); }},
      {2,
       [](const Stage& stage) {
         const std::string model = trained_on_a_folder(stage, stage / "images");
         return ringlet({"eval", "--checkpoint", model, "--data", "synthetic"});
       }},
      {2,
       [](const Stage& stage) {
         write_picture_folder(stage / "pictures");
         const std::string run = stage / "photographs";
         EXPECT_TRUE(succeeds(
             ringlet({"train", "--model", "mlp", "--data", stage / "pictures", "--image-size", "8",
                      "--max-steps", "1", "--batch-size", "5", "--out", run})));
         for (const char* split : {"/train/", "/test/"}) {
           fs::rename(stage / "pictures" + split + "red", stage / "pictures" + split + "pink");
         }
         return ringlet({"eval", "--checkpoint", run});
       }},
      {2,
       [](const Stage& stage) {
         const std::string model = trained_on_a_folder(stage, stage / "images");
         fs::remove_all(stage / "images");
         return ringlet({"eval", "--checkpoint", model});
       }},
      {1,
       [](const Stage& stage) {
         std::string bytes = read_file(stage.run() + "/model.safetensors");
         const std::string mean = R"("ringlet.mean":")";
         bytes[bytes.find(mean) + mean.size()] = '?';
         return ringlet({"eval", "--checkpoint", stage.file("w", bytes)});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"eval", "--checkpoint", broken_model(stage, '\xff')});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"eval", "--checkpoint", broken_model(stage)});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"predict", "--checkpoint", broken_model(stage),
                         stage.file("p.pgm", "P5 1 1 255\n7")});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"predict", "--checkpoint", broken_model(stage), "--data", "synthetic",
                         "--synthetic-test", "8"});
       }},
      {2,
       [](const Stage& stage) {
         return ringlet({"predict", "--checkpoint", run_with_margin(stage), "--data", "synthetic",
                         "--synthetic-test", "8"});
       }},
      {2,
       [](const Stage& stage) {
         const std::string run = run_with_margin(stage);
         fs::remove(run + "/centres.safetensors");
         return ringlet({"eval", "--checkpoint", run});
       }},
      {2,
       [](const Stage& stage) {
         write_picture_folder(stage / "pictures");
         const std::string run = stage / "photographs";
         EXPECT_TRUE(succeeds(ringlet({"train", "--model", "mlp", "--data", stage / "pictures",
                                       "--image-size", "8", "--max-steps", "1", "--batch-size", "5",
                                       "--loss", "cosface", "--out", run})));
         for (const char* split : {"/train/", "/test/"}) {
           fs::rename(stage / "pictures" + split + "red", stage / "pictures" + split + "pink");
         }
         return ringlet({"eval", "--checkpoint", run});
       }},
      {1,
       [](const Stage& stage) {
         return start_from_centres(stage, "6",
                                   [](std::string& bytes) { spoil(bytes, R"("weight)", 's'); });
       }},
      {1, [](const Stage& stage) { return start_from_centres(stage, "7", [](std::string&) {}); }},
      {1,
       [](const Stage& stage) {
         return start_from_centres(stage, "6", [](std::string& bytes) {
           spoil(bytes, "Bag", 'k');  // a class of that name is none of the data's
         });
       }},
      {1,
       [](const Stage& stage) {
         return start_from_centres(stage, "6", [](std::string& bytes) {
           const std::string name = R"(\"Shirt\")";
           bytes.replace(bytes.find(name), name.size(), R"(\"Dress\")");
         });
       }},
      {1,
       [](const Stage& stage) {
         return start_from_centres(stage, "6", [](std::string& bytes) {
           const std::string name = R"(\"Bag\")";
           bytes.replace(bytes.find(name), name.size(), "      7");
         });
       }},
      {1,
       [](const Stage& stage) {
         const std::string centres = run_with_margin(stage) + "/centres.safetensors";
         std::string bytes = read_file(centres);
         spoil(bytes, R"("ringlet.scale":"6)", 'x');
         write_file(centres, bytes);
         return ringlet({"eval", "--checkpoint", stage / "out"});
       }},
      {1, [](const Stage& stage) { return start_from_files_of_rows(stage, 0, ""); }},
      {1,
       [](const Stage& stage) {
         return start_from_files_of_rows(stage, 2, std::string(240, '\0'));  // one is missing
       }},
      {1,
       [](const Stage& stage) {
         return start_from_files_of_rows(stage, 1, std::string(240, '\xff'));  // NaN
       }},
      // Pictures.
      {1, [](const Stage& stage) { return with_model(stage, "predict", {stage / "."}); }},
      {1,
       [](const Stage& stage) {
         stage.file("a.heic", "x");
         return with_model(stage, "predict", {stage / "."});
       }},
      shown(""),
      shown("hello"),
      shown("P5 4 4 255\nab"),
      shown("P5 99999 99999 255\nab"),
      shown(jpeg_of_scans(101)),
      shown(jpeg_of_scans(20, 15000)),
      shown(animated_webp()),
      shown("BM" + std::string(28, '\0') + std::string("\1\0\0\0", 4)),
      {1,
       [](const Stage& stage) {
         const std::string large = stage.file("large.png", "");
         fs::resize_file(large, (std::uintmax_t{1} << 30) + 1);
         return with_model(stage, "predict", {large});
       }},
      {1,
       [](const Stage& stage) {
         Outcome outcome =
             with_model(stage, "predict", {stage.file("a.png", "a"), stage.file("b.png", "b")});
         outcome.err.erase(0, outcome.err.find("ringlet: error: "));  // behind the warnings
         outcome.out.clear();
         return outcome;
       }},
      // Reports.
      {1,
       [](const Stage& stage) {
         return ringlet({"report", stage / "none", "--out", stage / "page"});
       }},
      {1,
       [](const Stage& stage) {
         return ringlet({"report", stage / ".", "--out", stage / "page"});
       }},
      {1,
       [](const Stage& stage) {
         fs::create_directory(stage / "metrics.jsonl");
         return ringlet({"report", stage / ".", "--out", stage / "page"});
       }},
      // ringlet inspect.
      {1,
       [](const Stage& stage) {
         const std::string run = stage.run();
         fs::resize_file(run + "/state/state.json", 2 << 20);
         return ringlet({"inspect", run});
       }},
      inspected("\x89PNG"),
      {1,
       [](const Stage& stage) {
         return ringlet({"inspect", stage / "."});
       }},
      {1,
       [](const Stage&) {
         return ringlet({"inspect", "/dev/null"});
       }},
      inspected(kStep + "\n{\"kind\"\n\n"),
      inspected(kStep + "\n[1]\n"),
      inspected("{\"kind\":\"step\"}\n"),
      inspected("{\"kind\":\"epoch\",\"epoch\":\"1\"}\n"),
      inspected(kStep + "\n" + std::string(70'000, ' ') + "\n"),
      inspected(R"({"traceEvents":[{"ph":"X","name":"n","ts":1}]})"),
      inspected(R"({"traceEvents":[{"ph":"X","name":"n","ts":1,"dur":-1}]})"),
      inspected(R"({"traceEvents":[{"ph")"),
      merged(R"({"traceEvents":[)"),
      merged(of_process("0") + "\n"),
      merged(of_process("1", "2")),
      merged(of_process("1") + "{]\n"),
      merged(of_process("1") + R"({"name":"process_name","ph":"M","args":{}})" + "\n]}\n"),
      {1,
       [](const Stage& stage) {
         const std::string trace = stage.file("t.json", "{");
         fs::resize_file(trace, std::uintmax_t{1} << 30);
         return ringlet({"replay", trace, "--json", stage / "r.json"});
       }},
      replayed(two_ranks_with(R"("call":1,"peer")", R"("peer")")),
      replayed(R"({"traceEvents":[]})"),
      replayed(two_ranks_with(R"("ranks":2)", R"("ranks":65)")),
      replayed(two_ranks_with(R"("ranks":2)", R"("ranks":0)")),
      replayed(two_ranks_with(R"("ranks":2)", R"("ranks":3)", true)),
      replayed(two_ranks_with(R"("cat":"collective")", R"("cat":"phase")")),
      replayed(two_ranks_with(
          R"({"ph":"X","cat":"exchange")",
          R"({"ph":"X","cat":"exchange","name":"send","ts":15,"dur":20,"args":{"call":1}},)"
          R"({"ph":"X","cat":"exchange")")),
      replayed(two_ranks(9000)),
      replayed(two_ranks_with(R"({"ph":"X","cat":"exchange")", R"({"ph":"i","cat":"exchange")")),
      replayed(two_ranks_with(R"("in_at":0)", R"("in_at":9)")),
      replayed(two_ranks_with(R"("in_at":0)", R"("in_at":-1)")),
      replayed(two_ranks(), 2, {"--call", "7"}),
      replayed(two_ranks(), 2, {}, {}),
      replayed(two_ranks(), 2, {"--steps", "1"}),
      replayed(two_ranks(), 2, {"--steps", "1,9"}, {"--still"}),
      inspected(R"({"a":"traceEvents","traceEvents":7})"),
      inspected(R"({"traceEvents":)" + std::string(100, '[')),
  };
}

}  // namespace ringlet::testing
