#include "train/telemetry/device_report.h"

#include <gtest/gtest.h>

namespace ringlet::train {
namespace {

CudaDeviceInfo gpu(const std::vector<bool>& peer_access) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  return {.name = "NVIDIA H200",
          .capability_major = 9,
          .capability_minor = 0,
          .multiprocessors = 132,
          .memory_bytes = 140 * kGiB,
          .free_bytes = 139 * kGiB + kGiB / 2,
          .peer_access = peer_access};
}

DeviceReport two_gpus() {
  DeviceReport report{.processor = "AMD EPYC", .cores = 16, .instruction_set = "avx512"};
  report.cuda.devices = {gpu({true, true}), gpu({false, true})};
  report.cuda.versions = {"13.0", "13.0", "13.1.0", ""};
  report.nccl = "2.28.9";
  return report;
}

TEST(DeviceReport, ShowsEveryDeviceTheVersionsAndWhoSeesWhom) {
  EXPECT_EQ(to_text(two_gpus()),
            "cpu:0    AMD EPYC, 16 cores, avx512\n"
            "cuda:0   NVIDIA H200, 140.0 GiB (139.5 free), capability 9.0, 132 multiprocessors\n"
            "cuda:1   NVIDIA H200, 140.0 GiB (139.5 free), capability 9.0, 132 multiprocessors\n"
            "versions driver 13.0, runtime 13.0, cublas 13.1.0, cudnn not found, nccl 2.28.9\n"
            "\n"
            "peer access: whether the GPU of the row reads the column's memory\n"
            "          cuda:0  cuda:1\n"
            "cuda:0         -     yes\n"
            "cuda:1        no       -\n");
}

TEST(DeviceReport, SaysWhyAGpuCannotBeUsed) {
  DeviceReport report = two_gpus();
  report.cuda.devices[1].why_not = "its compute capability is 7.5; take another GPU";
  EXPECT_NE(to_text(report).find("132 multiprocessors\n         cannot be used: its compute "
                                 "capability is 7.5; take another GPU\nversions"),
            std::string::npos);
  const nlohmann::json gpus = to_json(report)["cuda"]["devices"];
  EXPECT_TRUE(gpus[0]["why_not"].is_null());
  EXPECT_EQ(gpus[1]["why_not"], report.cuda.devices[1].why_not);
}

TEST(DeviceReport, SaysWhyThereIsNoGpu) {
  DeviceReport report{.processor = "AMD EPYC", .cores = 1, .instruction_set = "avx2"};
  report.cuda.why_none = "no NVIDIA driver is loaded on this machine; install one";
  EXPECT_EQ(to_text(report),
            "cpu:0    AMD EPYC, 1 core, avx2\n"
            "cuda     none: no NVIDIA driver is loaded on this machine; install one\n");
}

TEST(DeviceReport, IsTheSameAsJson) {
  const nlohmann::json json = to_json(two_gpus());
  EXPECT_EQ(json["cpu"]["cores"], 16);
  EXPECT_EQ(json["cuda"]["devices"].size(), 2U);
  EXPECT_EQ(json["cuda"]["devices"][1]["device"], "cuda:1");
  EXPECT_EQ(json["cuda"]["devices"][1]["capability"], "9.0");
  EXPECT_EQ(json["cuda"]["devices"][1]["peer_access"], nlohmann::json({false, true}));
  EXPECT_EQ(json["cuda"]["versions"]["nccl"], "2.28.9");
  EXPECT_TRUE(json["cuda"]["versions"]["cudnn"].is_null());
  EXPECT_TRUE(json["cuda"]["why_none"].is_null());
}

TEST(DeviceReport, FindsAProcessorAndEitherGpusOrAReason) {
  const DeviceReport report = survey_devices();
  EXPECT_FALSE(report.processor.empty());
  EXPECT_GE(report.cores, 1);
  EXPECT_NE(report.cuda.devices.empty(), report.cuda.why_none.empty());
}

}  // namespace
}  // namespace ringlet::train
