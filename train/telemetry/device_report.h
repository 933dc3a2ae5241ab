// What there is to train on, for `ringlet devices`: the processor, the GPUs, and the libraries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/cuda_devices.h"

namespace ringlet::train {

struct DeviceReport {
  std::string processor;  ///< "AMD EPYC 9554 64-Core Processor", or "processor" where none tells
  int cores = 1;          ///< logical ones that this process may use
  std::string instruction_set;    ///< "avx512": what CPU kernels use
  std::string product_kernels{};  ///< "SkylakeX": what OpenBLAS uses
  CudaSurvey cuda{};
  std::string nccl{};  ///< "2.28.9"; empty where it cannot be opened
};

/// Asks the system; nothing of the GPUs that makes a context on them. Never throws for what is not
/// there.
DeviceReport survey_devices();
/// The processor alone: opens none of CUDA's libraries.
DeviceReport survey_processor();

/// Lines for people, each with its end. Without a GPU they say why, and what to do.
std::string to_text(const DeviceReport& report);
/// The same for programs; versions that are not known are null.
nlohmann::json to_json(const DeviceReport& report);

}  // namespace ringlet::train
