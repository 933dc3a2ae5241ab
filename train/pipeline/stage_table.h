// The table of a pipeline's stages, as text and as JSON: a row a stage.
//
//   stage  layers           device  ms F / B     parameters  held    activations  in all
//   0      conv1 .. layer2  cpu:0   14.1 / 29.8  683 K       2 of 8  41 MiB       52 MiB
//
// In all: what stands (values, gradients, the optimiser's state), the activations of all passes
// that are held, what an evaluation needs beyond one of these, and what kernels work in, where that
// was measured. Planned costs are no times: then the column is "% F / B", shares of a micro-batch
// forward and backward through all stages.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringlet::train {

struct StageRow {
  int stage = 0;
  std::string layers{};  ///< "layer3 .. fc"
  std::string device{};  ///< "cpu:0", "cuda:2, cuda:3"
  double forward = 0;    ///< of the first micro-batch: seconds, or a planned cost
  double backward = 0;
  double update = 0;            ///< of a step
  std::int64_t parameters = 0;  ///< numbers that are learnt
  int held = 1;                 ///< passes
  int micro_batches = 1;        ///< of a step
  std::int64_t pass_bytes = 0;  ///< activations of one pass, and what comes over its cuts
  std::int64_t kept_bytes = 0;  ///< of these what each pass has for itself where all share the rest
  bool recompute = false;       ///< they share them
  std::int64_t standing_bytes = 0;
  std::int64_t evaluation_bytes = 0;  ///< beyond one pass
  std::int64_t scratch_bytes = 0;     ///< 0: not known
  std::int64_t capacity = 0;          ///< of its device; 0: not known

  std::int64_t activation_bytes() const {
    return recompute ? pass_bytes + (held - 1) * kept_bytes : held * pass_bytes;
  }
  std::int64_t bytes() const {
    return standing_bytes + activation_bytes() + evaluation_bytes + scratch_bytes;
  }
  bool fits() const { return capacity == 0 || bytes() <= capacity; }
};

/// The heads and cells of the table, for whoever lays it out.
struct StageTable {
  std::vector<std::string> heads{};
  std::vector<std::vector<std::string>> rows{};
};
StageTable stage_table(const std::vector<StageRow>& rows, bool measured);

/// Lines, each with its end.
std::string to_text(const StageTable& table);

/// A list of objects. Planned costs are "forward_share" and "backward_share" there.
nlohmann::json to_json(const std::vector<StageRow>& rows, bool measured);

/// 683722 as "684 K", 10.5e6 as "10.5 M".
std::string count_in_words(std::int64_t count);
/// In KiB, MiB or GiB: "41.2 MiB".
std::string bytes_in_words(std::int64_t bytes);

}  // namespace ringlet::train
