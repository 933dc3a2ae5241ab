// What a pipeline will do, before it runs: its cuts, the table of its stages, its clock.
//
// A step of m micro-batches is played against the costs of the stages (simulate.h). Stages that
// share processors or memory bandwidth, as threads of one processor do, slow each other down; the
// costs know nothing of that.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nn/stages/stages.h"
#include "train/forecast/unit_costs.h"
#include "train/pipeline/schedules.h"
#include "train/pipeline/simulate.h"
#include "train/pipeline/stage_table.h"

namespace ringlet::train {

/// Micro-batches of a step where nobody says how many: 4 * stages, or less where that many would
/// leave some empty. On processors one that makes each a multiple of 16 samples, which is what
/// layouts in lanes are made for, if there is one from `stages` on.
int usual_micro_batches(int stages, std::int64_t samples, DeviceKind device);

/// Samples of each micro-batch, of `samples` in all; the larger ones first.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t samples, int micro_batches);

struct ForecastOptions {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::vector<std::int64_t> sizes{1};    ///< [m] samples of each micro-batch of a replica
  int replicas = 1;                      ///< of each stage
  std::vector<std::string> devices{};    ///< [p] in words
  std::vector<std::int64_t> capacity{};  ///< [p] bytes of each device; empty: not known
  bool recompute = false;                ///< see PipelineTimes
};

/// Cuts into `stages` by these costs, so that each fits its device. Throws ContractError as
/// nn::Units and balance() do.
nn::Stages balanced_stages(const CutModel& model, const UnitCosts& costs, int stages,
                           const ForecastOptions& options);

struct Forecast {
  std::string schedule{};
  bool measured = false;
  int replicas = 1;
  std::vector<std::int64_t> sizes{};  ///< [m]
  std::vector<StageRow> stages{};     ///< [p]
  std::vector<std::int64_t>
      crossing{};  ///< [p - 1] bytes of an activation of the first micro-batch
  PipelineTimes times{};
  Simulation step{};
  Simulation naive{};
};

/// Throws ContractError where a stage's units are none that the costs have.
Forecast forecast(CutModel& model, const UnitCosts& costs, const nn::Stages& stages,
                  const ForecastOptions& options);

/// "1f1b, 8 micro-batches of 16: bubble 11 %, predicted 1.74x of one device; naive 1.00x"
std::string in_words(const Forecast& forecast);
/// Whether all stages fit their devices; empty where nobody knows what these have.
std::string memory_in_words(const Forecast& forecast);

nlohmann::json to_json(const Forecast& forecast);

}  // namespace ringlet::train
