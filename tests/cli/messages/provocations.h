// What provokes the messages that a user can get, and where it may leave its files. Which message
// each gets, messages_test.cc looks up in docs/troubleshooting.md.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"

namespace ringlet::testing {

using Environment = std::map<std::string, std::string>;

/// Where a provocation may leave its files.
class Stage {
 public:
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

  std::string file(const std::string& name, const std::string& bytes) const {
    write_file(folder_ / name, bytes);
    return folder_ / name;
  }

  /// Trains on a good data set, of which `name` holds `bytes` instead.
  Outcome train_on(const char* name, const std::string& bytes) const {
    write_small_set(folder_.path());
    file(name, bytes);
    return ringlet({"train", "--model", "mlp", "--data", folder_.path(), "--epochs", "1"});
  }

  /// A folder whose sweep.json is this text.
  std::string holding_sweep(const std::string& json) const {
    std::filesystem::create_directories(folder_ / "sweep");
    write_file(folder_ / "sweep/sweep.json", json);
    return folder_ / "sweep";
  }

  /// Takes the weights from a file that holds `bytes`.
  Outcome init_from(const std::string& bytes) const {
    return ringlet(quick_train({"--init", file("w.safetensors", bytes)}));
  }

  /// A run of four steps in OUT.
  std::string run(const Arguments& changes = {}) const {
    EXPECT_TRUE(succeeds(ringlet(quick_train(Arguments{"--out", *this / "out"} + changes))));
    return *this / "out";
  }

  /// Resumes a run in whose state.json `what` was replaced by `by`, on purpose: without its sums.
  Outcome resume_with(const std::string& what, const std::string& by,
                      const Arguments& changes = {}) const {
    const std::string json = run(changes) + "/state/state.json";
    std::string text = read_file(json);
    const auto sums = text.find(",\n  \"sums\"");
    EXPECT_NE(sums, std::string::npos);
    text.replace(sums, std::string::npos, "\n}\n");
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    write_file(json, text.replace(at, what.size(), by));
    return resume();
  }
  Outcome resume(const Arguments& more = {}) const {
    return ringlet(Arguments{"train", "--resume", *this / "out"} + more);
  }

  Outcome configured(const std::string& toml) const {
    return ringlet(quick_train({"--config", file("c.toml", toml)}));
  }

 private:
  TemporaryDirectory folder_;
};

inline Outcome quick(const Arguments& changes, const Environment& environment = {}) {
  return ringlet(quick_train(changes), {.environment = environment});
}

struct Provocation {
  int code;
  std::function<Outcome(const Stage&)> provoke;
};

inline Provocation usage(const Arguments& arguments) {
  return {2, [=](const Stage&) { return ringlet(arguments); }};
}
inline Provocation usage_of_train(const Arguments& changes, const Environment& environment = {}) {
  return {2, [=](const Stage&) { return quick(changes, environment); }};
}

/// A model that was trained on a folder of small images.
inline std::string trained_on_a_folder(const Stage& stage, const std::string& folder) {
  std::filesystem::create_directory(folder);
  write_small_set(folder);
  std::string out = stage / "small";
  EXPECT_TRUE(succeeds(ringlet({"train", "--model", "mlp", "--data", folder, "--epochs", "1",
                                "--batch-size", "10", "--out", out})));
  return out;
}

std::vector<Provocation> provocations_by_flags();   ///< and by what the program finds around it
std::vector<Provocation> provocations_by_inputs();  ///< data, weights and states
std::vector<Provocation> provocations_by_torch();   ///< files of torch.save()
std::vector<Provocation> provocations_by_runs();    ///< what they write, and who reads that

}  // namespace ringlet::testing
