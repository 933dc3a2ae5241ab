#include "train/verification/pairs_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/files/file_error.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"

namespace ringlet::train {

namespace {

/// What is known of a pair, in two floats each: a double as the nearest one and the rest.
enum Slot : std::size_t { kDistance = 0, kLength = 2, kZeros = 4, kSlots = 5 };

void put(double value, float* slot) {
  slot[0] = static_cast<float>(value);
  slot[1] = static_cast<float>(value - static_cast<double>(slot[0]));
}
double taken_from(const float* slot) {
  return static_cast<double>(slot[0]) + static_cast<double>(slot[1]);
}

/// Two rows of a picture each as the sum of both.
std::vector<double> of_both(const std::vector<double>& rows, std::int64_t width) {
  const auto columns = static_cast<std::size_t>(width);
  std::vector<double> sums(2 * columns);
  for (std::size_t c = 0; c < columns; ++c) {
    sums[c] = rows[c] + rows[columns + c];
    sums[columns + c] = rows[2 * columns + c] + rows[3 * columns + c];
  }
  return sums;
}

}  // namespace

PairsShare::PairsShare(std::shared_ptr<const data::Pairs> pairs, data::PairImagesOptions images,
                       Flip flip, std::int64_t pairs_of_pass, int rank, int ranks)
    : pairs_(std::move(pairs)), mirrored_(flip == Flip::sum) {
  for (std::int64_t i = 0; i < pairs_->size(); ++i) {
    if (i / pairs_of_pass % ranks == rank) mine_.push_back(i);
  }
  begin();
  if (mine_.empty()) return;
  images.mirrored = mirrored_;
  images_ = std::make_shared<const data::PairImages>(pairs_, mine_, images);
}

void PairsShare::begin() {
  slots_.assign(static_cast<std::size_t>(pairs_->size()) * kSlots, 0);
  next_ = 0;
}

void PairsShare::take(std::span<const float> outputs, std::int64_t width,
                      const std::string& model) {
  const auto each = static_cast<std::size_t>(data::samples_of_pair(mirrored_) * width);
  for (std::size_t at = 0; at + each <= outputs.size(); at += each) {
    take_pair(outputs.subspan(at, each), width, model);
    ++next_;
  }
}

void PairsShare::take_pair(std::span<const float> outputs, std::int64_t width,
                           const std::string& model) {
  const auto broken = std::ranges::find_if(outputs, [](float v) { return !std::isfinite(v); });
  if (broken != outputs.end()) {
    const std::int64_t each = data::samples_of_pair(mirrored_);
    const std::int64_t sample =
        static_cast<std::int64_t>(next_) * each + (broken - outputs.begin()) / width;
    throw FileError(fmt::format("{} gives {} a number that is not finite; its weights are broken",
                                model, images_->picture_name(sample)));
  }
  const std::vector<double> rows(outputs.begin(), outputs.end());
  float* const slots = slots_.data() + static_cast<std::size_t>(mine_[next_]) * kSlots;
  Lengths passes, summed;
  (void)pair_distances(rows, width, passes);
  const std::vector<double> embeddings = mirrored_ ? of_both(rows, width) : rows;
  put(pair_distances(embeddings, width, summed)[0], slots + kDistance);
  put(passes.sum, slots + kLength);
  slots[kZeros] = static_cast<float>(summed.zeros);
}

Verified PairsShare::verified(const std::string& name) const {
  Verified result{.name = name, .figures = {}, .same = pairs_->same()};
  double lengths = 0;
  for (std::int64_t i = 0; i < pairs_->size(); ++i) {
    const float* const slot = slots_.data() + static_cast<std::size_t>(i) * kSlots;
    result.distances.push_back(taken_from(slot + kDistance));
    lengths += taken_from(slot + kLength);
    result.zero_embeddings += static_cast<std::int64_t>(slot[kZeros]);
  }
  result.mean_length =
      lengths / static_cast<double>(pairs_->size() * data::samples_of_pair(mirrored_));
  result.figures = figures_of(result.distances, pairs_->same());
  return result;
}

void sum_over_ranks(Device& device, comm::Communicator& communicator, std::vector<float>& numbers) {
  const Tensor sums(device, {std::ssize(numbers)});
  const std::unique_ptr<Event> ready = device.make_event();
  copy_from_host(device.compute(), numbers.data(), sums);
  communicator.meet_before_kernels(device.communication(), sums.view().bytes(),
                                   "verification's passes");
  device.compute().record(*ready);
  device.communication().wait(*ready);
  communicator.all_reduce(device.communication(), sums, "verification");
  device.communication().synchronize();
  communicator.require_alive();
  copy_to_host(device.compute(), sums, numbers.data());
}

}  // namespace ringlet::train
