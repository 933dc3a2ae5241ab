// RunFacts: OUT/run.json (train/telemetry/run_record.h) read back, by the paths of its fields.
// Every field may be missing: a text is empty then, and a number NaN.
#pragma once

#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::app::report {

class RunFacts {
 public:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  RunFacts();  ///< without any field
  /// Throws FileError where the text of `source` is no JSON.
  RunFacts(std::string_view text, const std::string& source);

  /// Of "/machine/cpu/name".
  std::string text(const char* path) const;
  double number(const char* path) const;

  std::string ringlet() const;  ///< its version, and those of the libraries that a GPU needed
  std::string devices() const;  ///< "cpu:0, cpu:0"
  std::string gpus() const;     ///< "NVIDIA H200 (cuda:0)"; empty where none was used
  double replicas() const;
  double batch() const;  ///< samples of a step over all replicas

  /// One of a step's all-reduces.
  struct Sum {
    std::string name, strategy;
    double bytes = kNone;
    double predicted_seconds = kNone, taken_seconds = kNone;
  };
  std::vector<Sum> sums() const;

  /// Of a model in stages.
  struct Stage {
    std::string layers, device;
  };
  std::vector<Stage> stages() const;

  /// A set of pairs that the run was measured on.
  struct Set {
    std::string name, file, hash;
  };
  std::vector<Set> verification_sets() const;

 private:
  /// An empty list where there is none.
  const nlohmann::json& list(const char* path) const;

  std::shared_ptr<const nlohmann::json> root_;
};

}  // namespace ringlet::app::report
