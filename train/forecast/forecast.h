// What a pipeline will do, before it runs: its cuts, the table of its stages, its clock.
//
// A step of m micro-batches is played against the costs of the stages (simulate.h): the sums of
// what their parts cost one by one (unit_costs.h), or what the stages took when all were at work
// together (train/setup/stage_rehearsal.h). Stages that share processors or memory bandwidth, as
// threads of one processor do, slow each other down, and the former know nothing of that.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
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
  /// What the stages took together, in place of what their parts cost. Its passes may be those of
  /// fewer micro-batches: those in the middle are then taken more often.
  std::optional<PipelineTimes> together{};
  std::vector<std::int64_t> scratch{};  ///< [p] bytes that kernels work in; empty: not known
};

/// Cuts into `stages` by these costs, so that each fits its device, as forecast() counts its bytes.
/// Throws ContractError as nn::Units and balance() do.
nn::Stages balanced_stages(CutModel& model, const UnitCosts& costs, int stages,
                           const ForecastOptions& options);

struct Forecast {
  std::string schedule{};
  bool measured = false;
  bool together = false;  ///< see ForecastOptions
  int replicas = 1;
  std::vector<std::int64_t> sizes{};  ///< [m]
  std::vector<StageRow> stages{};     ///< [p]
  std::vector<std::int64_t>
      crossing{};  ///< [p - 1] bytes of an activation of the first micro-batch
  PipelineTimes times{};
  /// Speed-ups are against the parts one by one on one device, which nobody slows down.
  Simulation step{};
  Simulation naive{};
};

/// Throws ContractError where a stage's units are none that the costs have.
Forecast forecast(CutModel& model, const UnitCosts& costs, const nn::Stages& stages,
                  const ForecastOptions& options);

/// Those of ForecastOptions::together as one list, and back: [6 * stages - 2], and behind them each
/// pass that is known by itself. Throws ContractError for another size.
std::vector<double> numbers_of(const PipelineTimes& together);
PipelineTimes times_of(std::span<const double> numbers, int stages);

/// "1f1b, 8 micro-batches of 16: bubble 11 %, predicted 1.74x of one device; naive 1.00x"
std::string in_words(const Forecast& forecast);
/// Whether all stages fit their devices; empty where nobody knows what these have.
std::string memory_in_words(const Forecast& forecast);

nlohmann::json to_json(const Forecast& forecast);

}  // namespace ringlet::train
