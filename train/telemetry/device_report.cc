#include "train/telemetry/device_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "base/processor_name.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/device.h"
#include "kernels/linear.h"

namespace ringlet::train {

namespace {

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string capability(const CudaDeviceInfo& gpu) {
  return fmt::format("{}.{}", gpu.capability_major, gpu.capability_minor);
}

std::string cuda_name(std::size_t index) { return fmt::format("cuda:{}", index); }

/// (what, version) in the order in which they are shown.
std::vector<std::pair<const char*, std::string>> versions_of(const DeviceReport& report) {
  const CudaVersions& versions = report.cuda.versions;
  return {{"driver", versions.driver},
          {"runtime", versions.runtime},
          {"cublas", versions.cublas},
          {"cudnn", versions.cudnn},
          {"nccl", report.nccl}};
}

std::string versions_text(const DeviceReport& report) {
  std::string text;
  for (const auto& [what, version] : versions_of(report)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what,
                        version.empty() ? "not found" : version);
  }
  return fmt::format("{:<8} {}\n", "versions", text);
}

std::string peer_matrix(const std::vector<CudaDeviceInfo>& gpus) {
  std::string text =
      "\npeer access: whether the GPU of the row reads the column's memory\n        ";
  for (std::size_t other = 0; other < gpus.size(); ++other) {
    text += fmt::format(" {:>7}", cuda_name(other));
  }
  text += "\n";
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    text += fmt::format("{:<8}", cuda_name(gpu));
    for (std::size_t other = 0; other < gpus.size(); ++other) {
      text += fmt::format(" {:>7}", gpu == other                   ? "-"
                                    : gpus[gpu].peer_access[other] ? "yes"
                                                                   : "no");
    }
    text += "\n";
  }
  return text;
}

nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

nlohmann::json as_json(const CudaDeviceInfo& gpu, std::size_t index) {
  nlohmann::json json{{"device", cuda_name(index)},
                      {"name", gpu.name},
                      {"memory_bytes", gpu.memory_bytes},
                      {"capability", capability(gpu)},
                      {"multiprocessors", gpu.multiprocessors},
                      {"peer_access", gpu.peer_access},
                      {"why_not", or_null(gpu.why_not)}};
  if (gpu.free_bytes) json["free_bytes"] = *gpu.free_bytes;
  return json;
}

}  // namespace

DeviceReport survey_processor() {
  return {.processor = processor_name(),
          .cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
          .instruction_set = name_of(detect_instruction_set()),
          .product_kernels = product_kernels()};
}

DeviceReport survey_devices() {
  DeviceReport report = survey_processor();
  report.cuda = survey_cuda();
  report.nccl = comm::nccl_version();
  return report;
}

std::string to_text(const DeviceReport& report) {
  std::string text =
      fmt::format("{:<8} {}, {} core{}, {}\n", "cpu:0", report.processor, report.cores,
                  report.cores == 1 ? "" : "s", report.instruction_set);
  const std::vector<CudaDeviceInfo>& gpus = report.cuda.devices;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const CudaDeviceInfo& gpu = gpus[i];
    const std::string free =
        gpu.free_bytes ? fmt::format(" ({:.1f} free)", gib(*gpu.free_bytes)) : "";
    text +=
        fmt::format("{:<8} {}, {:.1f} GiB{}, capability {}, {} multiprocessors\n", cuda_name(i),
                    gpu.name, gib(gpu.memory_bytes), free, capability(gpu), gpu.multiprocessors);
    if (!gpu.why_not.empty()) text += fmt::format("{:<8} cannot be used: {}\n", "", gpu.why_not);
  }
  if (gpus.empty()) text += fmt::format("{:<8} none: {}\n", "cuda", report.cuda.why_none);
  if (!report.cuda.versions.runtime.empty()) text += versions_text(report);
  if (gpus.size() > 1) text += peer_matrix(gpus);
  return text;
}

nlohmann::json to_json(const DeviceReport& report) {
  nlohmann::json gpus = nlohmann::json::array();
  for (std::size_t i = 0; i < report.cuda.devices.size(); ++i) {
    gpus.push_back(as_json(report.cuda.devices[i], i));
  }
  nlohmann::json versions;
  for (const auto& [what, version] : versions_of(report)) versions[what] = or_null(version);
  return {
      {"cpu",
       {{"device", "cpu:0"},
        {"name", report.processor},
        {"cores", report.cores},
        {"instruction_set", report.instruction_set},
        {"openblas", or_null(report.product_kernels)}}},
      {"cuda",
       {{"devices", gpus}, {"versions", versions}, {"why_none", or_null(report.cuda.why_none)}}}};
}

}  // namespace ringlet::train
