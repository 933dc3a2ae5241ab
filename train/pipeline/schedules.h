// Schedules: in which order each stage of a pipeline does its forwards and backwards.
//
//   naive   F0 B0 F1 B1 ...: one stage works at a time. The time of a step is m p (F + B).
//   gpipe   F0 .. F(m-1), then B0 .. B(m-1). Time (m + p - 1) (F + B), but m passes are held.
//   1f1b    on stage i min(m, p - 1 - i) forwards, then a forward and a backward in turns, then the
//           backwards that are left. The same time, and at most min(m, p - i) passes are held.
//
// for p stages with equal seconds F and B, m micro-batches and free moves. Backwards ascend, so
// gradients are added in one order whatever the schedule. GPipe: Huang et al., "GPipe", NeurIPS
// 2019; 1F1B: Narayanan et al., "PipeDream", SOSP 2019, here with one update a step.
//
// Between a forward and a backward 1f1b sends an activation to the next stage and receives a
// gradient of the same: that is one Move, and so it is toward the stage before. As a send and a
// receive one behind the other, both neighbours would send first, and wait for each other for ever.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/pipeline/program.h"

namespace ringlet::train {

enum class PipelineSchedule : std::uint8_t { naive, gpipe, one_f_one_b };

const char* name_of(PipelineSchedule schedule);      ///< "1f1b"
std::vector<std::string> pipeline_schedule_names();  ///< all of them
/// Throws ContractError naming the choices.
PipelineSchedule parse_pipeline_schedule(std::string_view name);

/// The programs of all stages. With one stage there are no moves: F0 B0 F1 B1 ..., and for gpipe
/// all forwards first. Throws ContractError unless stages and micro_batches are at least 1.
Pipeline make_pipeline(PipelineSchedule schedule, int stages, int micro_batches);

}  // namespace ringlet::train
