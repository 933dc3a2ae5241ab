// The plan of a run as named texts, which all ranks must agree on before the first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/setup/run_setup.h"
#include "train/sync/gradient_sync.h"

namespace ringlet::train {

/// Version, recipe, data, parameters in arena order, buckets, strategy: (name, value).
std::vector<std::pair<std::string, std::string>> plan_entries(const RunSetup& setup,
                                                              const nn::Plan& plan,
                                                              const std::vector<Bucket>& buckets,
                                                              const std::string& strategy);

}  // namespace ringlet::train
