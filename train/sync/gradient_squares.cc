#include "train/sync/gradient_squares.h"

#include <algorithm>
#include <string>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kFloatsOfDouble = kDoubleBytes / static_cast<std::int64_t>(sizeof(float));

/// Zeros, as f32 has them, too.
Tensor doubles(Device& device, std::int64_t count) {
  Tensor numbers(device, {std::max<std::int64_t>(1, count) * kFloatsOfDouble});
  fill(device.compute(), 0, numbers);
  return numbers;
}

View range(const Tensor& numbers, std::int64_t begin, std::int64_t count) {
  const View floats =
      numbers.view().slice(begin * kFloatsOfDouble, (begin + count) * kFloatsOfDouble);
  return {floats.address(), {count * kDoubleBytes}, DType::u8};
}

/// The largest of all ranks' numbers.
std::int64_t largest(Device& device, comm::Communicator& ranks, std::int64_t number) {
  std::int64_t most = 0;
  for (const std::string& text : ranks.gather_text(device.communication(), std::to_string(number),
                                                   "sums of a stage's parameters")) {
    most = std::max<std::int64_t>(most, std::stoll(text));
  }
  return most;
}

}  // namespace

GradientSquares::GradientSquares(Device& device, comm::Communicator& replicas,
                                 comm::Communicator* stages, const nn::Parameters& parameters)
    : device_(device),
      replicas_(replicas),
      parameters_(parameters),
      position_(parameters.registry().along),
      stages_(stages),
      of_replicas_(device, replicas),
      of_stages_(device, stages != nullptr ? *stages : replicas) {
  for (const nn::PlannedParameter& planned : parameters.plan().parameters) {
    if (!parameters.plan().is_frozen(planned)) sums_.push_back({&planned});
  }
  std::ranges::sort(sums_, {}, [](const Sum& sum) { return sum.planned->id; });
  for (Sum& sum : sums_) {
    sum.first = count_;
    count_ += sum.is_cut() ? position_.parts() : 1;
  }
  most_ = stages != nullptr ? largest(device, *stages, count_) : count_;
  part_ = doubles(device, position_.parts_of_rank());
  mine_ = doubles(device, most_);
  make_ranges();
  if (stages != nullptr) all_ = doubles(device, stages->size() * most_);
}

void GradientSquares::make_ranges() {
  std::vector<SquareRange> ranges;
  for (const Sum& sum : sums_) {
    if (!sum.is_short()) continue;
    ranges.push_back({sum.planned->begin, sum.planned->gradient_end(), sum.first});
    longest_ = std::max(longest_, ranges.back().end - ranges.back().begin);
  }
  const auto bytes = static_cast<std::int64_t>(ranges.size() * sizeof(SquareRange));
  ranges_ = Tensor(device_, {bytes}, DType::u8);
  if (bytes > 0) copy_from_host(device_.compute(), ranges.data(), ranges_);
}

ConstView GradientSquares::of_stage() const { return range(mine_, 0, count_); }

/// Of all numbers, or of part `index` of the rows that this rank has.
void GradientSquares::square(const Sum& sum, int index, const View& to) {
  const nn::PlannedParameter& planned = *sum.planned;
  std::int64_t begin = planned.begin, end = planned.gradient_end();
  if (sum.is_cut()) {
    const nn::Parameter& parameter =
        *parameters_.registry().parameters[static_cast<std::size_t>(planned.id)];
    const nn::Rows rows = parameter.gradient_rows(position_, index);
    const std::int64_t columns = planned.shape.count_per_sample();
    begin = planned.begin + rows.begin * columns;
    end = planned.begin + rows.end * columns;
  }
  square_sum(device_.compute(), parameters_.gradients().slice(begin, end), to,
             planned.of_loss ? 0 : 1);
}

void GradientSquares::square_rows(const Sum& sum, bool rehearses) {
  const int parts = position_.parts_of_rank();
  for (int index = 0; index < parts; ++index) square(sum, index, range(part_, index, 1));
  const View mine = range(part_, 0, parts), all = range(mine_, sum.first, position_.parts());
  Stream& compute = device_.compute();
  if (position_.ranks == 1 || rehearses) {
    copy(compute, mine, all.slice(0, mine.count()));
    return;
  }
  of_replicas_.hold(compute, [&](Stream& stream) {
    replicas_.all_gather(stream, mine, all, "squares of sharded rows");
  });
}

void GradientSquares::measure(const View& norm, const NormLimit& limit, bool rehearses) {
  Stream& compute = device_.compute();
  square_sums(compute, parameters_.gradients(), ranges_, longest_, range(mine_, 0, most_));
  for (const Sum& sum : sums_) {
    if (sum.is_cut()) {
      square_rows(sum, rehearses);
    } else if (!sum.is_short()) {
      square(sum, 0, range(mine_, sum.first, 1));
    }
  }
  if (stages_ == nullptr || rehearses) {
    norm_of_sums(compute, of_stage(), norm, limit);
    return;
  }
  const View all = range(all_, 0, stages_->size() * most_);
  of_stages_.hold(compute, [&](Stream& stream) {
    stages_->all_gather(stream, range(mine_, 0, most_), all, "squares of the stages");
  });
  norm_of_sums(compute, all, norm, limit);
}

}  // namespace ringlet::train
