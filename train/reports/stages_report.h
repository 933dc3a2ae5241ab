// What the stages of a model did in an epoch: how much of their time was bubble, and who waited.
//
// Times are of the ranks' threads, so there are none where a rank has a GPU. The bubble is the part
// of all ranks' time in which no forward and no backward runs, of the epoch's steps with all that
// belongs to them: updates, reading of samples, reports.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace ringlet::train {

/// Seconds of a rank's thread in an epoch; what is missing up to all of them are updates and the
/// rest.
struct StageSeconds {
  double all = 0;     ///< from its first step on: ranks do not begin an epoch at one time
  double busy = 0;    ///< forwards and backwards
  double data = 0;    ///< waiting for samples
  double before = 0;  ///< messages from and to the stage before, with the wait for it
  double behind = 0;  ///< the same of the next stage
  double sums = 0;    ///< of gradients and statistics, with the wait for the other ranks
  bool operator==(const StageSeconds&) const = default;
};

/// "3 1.5 0 .25 0 .125", and back. Throws ContractError for another text.
std::string to_text(const StageSeconds& seconds);
StageSeconds stage_seconds_of(const std::string& text);

/// Parts of a stage's time, 0 to 1, as StageSeconds; up to 1 are missing updates and the rest.
struct StageShares {
  double busy = 0, data = 0, before = 0, behind = 0, sums = 0;
  bool operator==(const StageShares&) const = default;
};

/// A column of metrics, with a number for each stage.
struct StageField {
  const char* name;
  double StageShares::*share;
};
inline constexpr std::array<StageField, 5> kStageFields{{{"stages_busy", &StageShares::busy},
                                                         {"stages_data", &StageShares::data},
                                                         {"stages_before", &StageShares::before},
                                                         {"stages_behind", &StageShares::behind},
                                                         {"stages_sums", &StageShares::sums}}};

struct StagesReport {
  double bubble = 0;                  ///< measured, 0 to 1
  double predicted = 0;               ///< the forecast's
  double step_seconds = 0;            ///< of the middle one of the epoch's steps; 0: not known
  double predicted_step_seconds = 0;  ///< the forecast's; 0: of planned costs, which are no times
  int stage = 0;                      ///< that waited most
  double waited = 0;                  ///< of its time, 0 to 1
  std::string reason{};               ///< what it waited for most: "stage 0", "samples", "sums"
  double of_reason = 0;               ///< of its time
  std::vector<StageShares> stages{};  ///< [p]; none where it was read of an older run
};

/// `ranks`: of each rank, stage by stage, each with as many replicas; a stage's time is the mean of
/// theirs. What steps took is left to the caller.
StagesReport report_of(const std::vector<StageSeconds>& ranks, int stages, double predicted);

/// "step 57.3 ms (predicted 56.9 ms), bubble 31 % (predicted 27 %), stage 1 waited most: 35 % of
/// the time, 30 % for stage 0"
std::string in_words(const StagesReport& report);

}  // namespace ringlet::train
