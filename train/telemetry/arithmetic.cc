#include "train/telemetry/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "base/instruction_set.h"
#include "comm/core/rank_text.h"
#include "comm/processes/plan_check.h"
#include "kernels/cuda_devices.h"
#include "kernels/linear.h"
#include "train/recipe/precision_support.h"

namespace ringlet::train {

namespace {

/// The names of the GPUs that are used, each once; empty where processors compute.
std::string names_of_gpus(const std::vector<DeviceId>& devices) {
  std::set<std::string> names;
  std::vector<CudaDeviceInfo> gpus;
  for (const DeviceId& device : devices) {
    if (device.kind != DeviceKind::cuda) continue;
    if (gpus.empty()) gpus = survey_cuda().devices;
    const auto index = static_cast<std::size_t>(device.index);
    names.insert(index < gpus.size() ? gpus[index].name : device.to_string());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Of ARM, since the C library and OpenBLAS compute otherwise there, whatever the set.
constexpr std::string_view kOnArm = " on ARM";

/// The weaker of two, so that both processors have it. OpenBLAS's names from the oldest on; others
/// count as new.
std::string weaker(const std::vector<std::string>& from_weakest, const std::string& a,
                   const std::string& b) {
  const auto position = [&](const std::string& name) {
    return std::find(from_weakest.begin(), from_weakest.end(), name);
  };
  return position(b) < position(a) ? b : a;
}

std::string words_of(const Arithmetic& arithmetic) {
  if (!arithmetic.gpus.empty()) return arithmetic.gpus;
  std::string words = arithmetic.instruction_set;
  if (!arithmetic.openblas.empty()) words += " and OpenBLAS's " + arithmetic.openblas;
  if (!arithmetic.bf16.empty()) words += fmt::format(" ({} for bf16)", arithmetic.bf16);
  if (!arithmetic.compiler.empty()) words += ", compiled by " + arithmetic.compiler;
  return words;
}

/// Compilers are named only where they differ.
std::vector<Arithmetic> without_one_compiler(std::vector<Arithmetic> all) {
  const bool differ = std::any_of(all.begin(), all.end(), [&](const Arithmetic& one) {
    return one.compiler != all.front().compiler;
  });
  for (Arithmetic& one : all) {
    if (!differ) one.compiler.clear();
  }
  return all;
}

/// What makes `all` alike.
std::string remedy_for(const std::vector<Arithmetic>& all, const char* whom) {
  static const std::vector<std::string> kSets{"portable", "portable on ARM", "neon on ARM", "avx2",
                                              "avx512"};
  static const std::vector<std::string> kCores{"ARMV8",       "Prescott",      "Core2", "Nehalem",
                                               "Sandybridge", "Haswell",       "Zen",   "SkylakeX",
                                               "Cooperlake",  "SapphireRapids"};
  Arithmetic least = all.front();
  bool on_gpus = false, compiled_alike = true, run_alike = true;
  std::size_t on_arm = 0;
  for (const Arithmetic& one : all) {
    least.instruction_set = weaker(kSets, least.instruction_set, one.instruction_set);
    if (least.openblas.empty()) least.openblas = one.openblas;
    if (!one.openblas.empty()) least.openblas = weaker(kCores, least.openblas, one.openblas);
    on_gpus = on_gpus || !one.gpus.empty();
    on_arm += one.instruction_set.ends_with(kOnArm) ? 1 : 0;
    compiled_alike = compiled_alike && one.compiler == all.front().compiler;
    Arithmetic recompiled = one;
    recompiled.compiler = all.front().compiler;
    run_alike = run_alike && recompiled == all.front();
  }
  if (on_gpus) return fmt::format("take equal GPUs for {}", whom);
  if (on_arm != 0 && on_arm != all.size()) {
    return fmt::format("take processors of one kind for {}", whom);
  }
  if (on_arm != 0) least.instruction_set.resize(least.instruction_set.size() - kOnArm.size());
  std::string remedy;
  if (!compiled_alike) remedy = "take the same build of ringlet";
  if (!run_alike) {
    remedy +=
        fmt::format("{}set RINGLET_ISA={}", remedy.empty() ? "" : " and ", least.instruction_set);
    if (!least.openblas.empty()) remedy += " OPENBLAS_CORETYPE=" + least.openblas;
  }
  return fmt::format("{} for {}", remedy, whom);
}

}  // namespace

Arithmetic arithmetic_here(const Execution& execution, Precision precision,
                           const std::string& compiler) {
  if (std::string gpus = names_of_gpus(execution.devices); !gpus.empty()) {
    return {.gpus = std::move(gpus)};
  }
  Arithmetic here{.instruction_set = name_of(detect_instruction_set()),
                  .openblas = product_kernels(),
                  .compiler = compiler};
  if (kArm) here.instruction_set += kOnArm;
  if (precision == Precision::bf16) {
    here.bf16 = name_of(bf16_products(execution.emulate_precision));
  }
  return here;
}

std::string to_text(const Arithmetic& arithmetic) {
  return comm::to_text({{arithmetic.instruction_set, arithmetic.openblas},
                        {arithmetic.bf16, arithmetic.gpus},
                        {arithmetic.compiler, ""}});
}

Arithmetic arithmetic_of(const std::string& text) {
  comm::Plan plan = comm::plan_of(text);
  plan.resize(3);
  return {plan[0].first, plan[0].second, plan[1].first, plan[1].second, plan[2].first};
}

std::string warning_of_unlike(const std::vector<Arithmetic>& processes_of_run) {
  const std::vector<Arithmetic> of_process = without_one_compiler(processes_of_run);
  std::string who;
  std::vector<Arithmetic> told;
  for (const Arithmetic& one : of_process) {
    if (std::find(told.begin(), told.end(), one) != told.end()) continue;
    told.push_back(one);
    std::vector<int> processes;
    for (std::size_t i = 0; i < of_process.size(); ++i) {
      if (of_process[i] == one) processes.push_back(static_cast<int>(i));
    }
    who +=
        fmt::format("{}{} {} with {}", who.empty() ? "" : ", ", comm::text_of_processes(processes),
                    processes.size() == 1 ? "computes" : "compute", words_of(one));
  }
  if (told.size() < 2) return {};
  return fmt::format(
      "--exact: this run's bytes may be no other run's, since its processes compute differently: "
      "{}; {}",
      who, remedy_for(told, "all of them"));
}

std::string warning_of_change(const Arithmetic& before, const Arithmetic& now) {
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && a != b;
  };
  if (!differ(before.instruction_set, now.instruction_set) &&
      !differ(before.openblas, now.openblas) && before.gpus == now.gpus &&
      !differ(before.compiler, now.compiler)) {
    return {};
  }
  // A run of a former version may not say what compiled it.
  std::vector<Arithmetic> both{before, now};
  if (before.compiler.empty()) both.back().compiler.clear();
  both = without_one_compiler(both);
  return fmt::format(
      "--exact: this run's bytes may be no other run's, since it was computed with {} so far and "
      "goes on with {}; {}",
      words_of(both[0]), words_of(both[1]), remedy_for(both, "the whole run"));
}

}  // namespace ringlet::train
