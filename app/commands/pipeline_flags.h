// The flags of `ringlet pipeline`, and what they ask for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/flags.h"
#include "train/forecast/forecast.h"

namespace ringlet::app {

/// The flags as the user wrote them; 0 and empty: not given.
struct PipelineFlags {
  RawFlags train{};
  std::string image{};  ///< "3x224x224"
  std::int64_t classes = 0;
  std::string stages = "2";  ///< a number, or stages by hand
  int micro_batches = 0;
  train::PipelineSchedule schedule = train::PipelineSchedule::one_f_one_b;
  bool recompute = false;
  bool measures = true;
  std::int64_t memory = 0;       ///< bytes of a device
  double link = 0;               ///< bytes a second
  std::filesystem::path from{};  ///< a trace
  int step = -1;                 ///< of it; -1: a typical one
  std::filesystem::path json{}, out{}, still{};
  bool force = false;
};

void add_pipeline_flags(CLI::App& command, PipelineFlags& flags);

/// How many --stages asks for; 0 where they are written by hand.
int number_of_stages(const PipelineFlags& flags);

/// The model for so many micro-batches of a replica, the first of `samples`. Throws UsageError for
/// images that are none, or that are too small.
train::CutModel model_of(const PipelineFlags& flags, const train::TrainOptions& options,
                         std::int64_t samples);

/// The devices of each stage's replicas, by rank: stage * replicas + replica. Throws UsageError.
std::vector<DeviceId> devices_of(const PipelineFlags& flags, const nn::Stages& stages);

}  // namespace ringlet::app
