#include "train/loop/step_inputs.h"

#include <algorithm>

#include "kernels/elementwise.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kWidth = std::tuple_size_v<StepRates>;

}  // namespace

StepInputs::StepInputs(Device& device, std::int64_t table_rows)
    : device_(device),
      table_rows_(table_rows),
      numbers_(device, {kTable + table_rows * kWidth}),
      host_(static_cast<std::size_t>(numbers_.shape().count())),
      uploader_(device, numbers_.view().bytes()) {
  fill(device.compute(), 0, numbers_);  // a rehearsal reads them before the first upload()
}

ConstView StepInputs::table() const {
  return numbers_.view()
      .slice(kTable, kTable + table_rows_ * kWidth)
      .reshaped({table_rows_, kWidth});
}

void StepInputs::upload(std::span<const StepRates> rates, std::int64_t skips, double divisor,
                        std::int64_t own_samples, bool stop_wished) {
  require(!rates.empty() && std::ssize(rates) <= std::max<std::int64_t>(1, table_rows_),
          "StepInputs::upload", "there are more rates than rows");
  std::fill(host_.begin(), host_.end(), 0.0F);
  host_[kLossSeed] = 1.0F / static_cast<float>(divisor);
  std::copy(rates.front().begin(), rates.front().end(), host_.begin() + kRates);
  host_[kCounts] = static_cast<float>(own_samples);
  host_[kCounts + 1] = stop_wished ? 1.0F : 0.0F;
  host_[kNewest] = static_cast<float>(std::ssize(rates) - 1 + skips);
  auto row = host_.begin() + kTable;
  for (std::size_t i = 0; table_rows_ > 0 && i < rates.size(); ++i) {
    row = std::copy(rates[i].begin(), rates[i].end(), row);
  }
  uploader_.upload(device_.compute(), host_.data(), numbers_);
}

}  // namespace ringlet::train
