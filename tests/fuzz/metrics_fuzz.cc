// Metrics in JSON lines.
#include "base/files/atomic_file.h"
#include "tests/fuzz/fuzz.h"
#include "train/telemetry/metrics_reader.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  const std::string step =
      R"({"kind":"step","epoch":1,"step":1,"loss":2.5,"lr":0.004,"samples":128})";
  const std::string with_norm =
      R"({"kind":"step","epoch":1,"step":2,"loss":null,"lr":1e-30,"samples":1,"grad_norm":0.5})";
  const std::string epoch =
      R"({"kind":"epoch","epoch":1,"train_loss":0.5,"test_loss":null,"test_accuracy":0.75,)"
      R"("seconds":3,"samples_per_second":100.5,"sync_share":0.25})";
  return {step + "\n" + with_norm + "\n" + epoch + "\n", step + "\n" + step.substr(0, 30),
          with_norm, "{}\n\n[1]\n"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<FileError>([&] {
    const train::Metrics metrics = train::parse_metrics(fuzz::text_of(data, size), "fuzz");
    const train::StepColumns& steps = metrics.steps;
    const std::size_t n = steps.size();
    fuzz::promise(steps.epoch.size() == n && steps.loss.size() == n && steps.lr.size() == n &&
                      steps.samples.size() == n,
                  "columns are equally long");
    fuzz::promise(steps.grad_norm.empty() || steps.grad_norm.size() == n,
                  "gradient norms come for all steps or none");
  });
  return 0;
}
