#include "train/sync/gradient_sync.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "base/trace.h"
#include "kernels/elementwise.h"

namespace ringlet::train {

namespace {

std::string bucket_name(int index, const std::string& first, const std::string& last) {
  const std::string content = first == last ? first : first + " .. " + last;
  return "bucket " + std::to_string(index) + " (" + content + ")";
}

/// `options` as they are for these ranks: on one machine nothing is narrow between machines.
SyncOptions resolved(const SyncOptions& options, DeviceKind device,
                     const comm::Communicator& communicator, const nn::Plan& plan) {
  const bool between = communicator.world().machines > 1;
  SyncOptions resolved = with_bucket_sizes(
      options, {device, between, (plan.replicated() - plan.frozen) * size_of(DType::f32)});
  if (options.narrow_between && !between) {
    resolved.grad_dtype = DType::f32;
    resolved.narrow_between = false;
  }
  return resolved;
}

}  // namespace

SyncOptions with_bucket_sizes(SyncOptions options, const SyncConditions& conditions) {
  if (options.bucket_kb >= 0) return options;
  options.bucket_kb = 1024;
  if (conditions.device == DeviceKind::cuda) {
    options.bucket_kb = 25 * 1024;
    if (options.first_bucket_kb < 0) options.first_bucket_kb = 1024;
  } else if (conditions.is_between_machines && options.overlap) {
    options.bucket_kb = std::clamp<std::int64_t>(conditions.gradient_bytes / 8 / 1024, 64, 1024);
  }
  return options;
}

namespace {

/// They come first.
std::size_t frozen_in(const nn::Plan& plan) {
  const auto is_frozen = [&](const nn::PlannedParameter& planned) {
    return plan.is_frozen(planned);
  };
  return static_cast<std::size_t>(std::ranges::count_if(plan.parameters, is_frozen));
}

}  // namespace

std::vector<Bucket> plan_buckets(const nn::Plan& plan, const SyncOptions& options) {
  const std::int64_t first_kb =
      options.first_bucket_kb < 0 ? options.bucket_kb : options.first_bucket_kb;
  const std::int64_t gradients = plan.with_gradient();
  const std::int64_t all = gradients + nn::Parameters::kStatistics + plan.running_elements;
  const bool apart =
      options.grad_dtype != DType::f32 || plan.is_sharded() || options.statistics_apart;
  std::vector<Bucket> buckets;
  if (apart) buckets.push_back({.begin = gradients, .end = all, .name = "statistics"});
  const std::int64_t end = apart ? std::min(plan.replicated(), gradients) : all;
  int cut = 0;
  const Bucket empty{.dtype = options.narrow_between ? DType::f32 : options.grad_dtype,
                     .between = options.narrow_between ? options.grad_dtype : DType::f32};
  Bucket open = empty;
  open.begin = open.end = plan.frozen;  // which nobody sums
  std::string first;
  const auto is_replicated = [](const nn::PlannedParameter& planned) {
    return planned.placement != nn::Placement::rows;
  };
  const auto count = static_cast<std::size_t>(
      std::count_if(plan.parameters.begin(), plan.parameters.end(), is_replicated));
  for (std::size_t i = frozen_in(plan); i < count; ++i) {
    if (open.parameters == 0) first = plan.parameters[i].name;
    ++open.parameters;
    const bool last = i + 1 == count;
    open.end = last ? end : plan.parameters[i + 1].begin;
    const std::int64_t wanted = (cut == 0 ? first_kb : options.bucket_kb) * 1024;
    if (last || (open.end - open.begin) * size_of(DType::f32) >= wanted) {
      open.name = bucket_name(cut++, first, plan.parameters[i].name);
      buckets.push_back(open);
      const std::int64_t next = open.end;
      open = empty;
      open.begin = open.end = next;
    }
  }
  return buckets;
}

std::int64_t wire_bytes(const std::vector<Bucket>& buckets) {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : buckets) bytes += bucket.wire_bytes();
  return bytes;
}

const char* strategy_of(const Bucket& bucket, const comm::Communicator& communicator) {
  return bucket.between == DType::f32 ? communicator.strategy_for(bucket.wire_bytes())
                                      : communicator.strategy_between();
}

std::string strategies_in_words(const comm::Communicator& communicator,
                                const std::vector<Bucket>& buckets) {
  std::string name = communicator.strategy();
  std::vector<std::string> picked;
  for (const Bucket& bucket : buckets) {
    const std::string of_bucket = strategy_of(bucket, communicator);
    if (std::find(picked.begin(), picked.end(), of_bucket) == picked.end()) {
      picked.push_back(of_bucket);
    }
  }
  if (picked.size() == 1 && picked.front() == name) return name;
  return fmt::format("{} ({})", name, fmt::join(picked, ", "));
}

GradientSync::GradientSync(Device& device, comm::Communicator& communicator,
                           const nn::Parameters& parameters, const ShardTree& tree,
                           const SyncOptions& options)
    : device_(device),
      communicator_(communicator),
      parameters_(parameters),
      tree_(tree),
      options_(resolved(options, device.id().kind, communicator, parameters.plan())),
      buckets_(plan_buckets(parameters.plan(), options_)),
      bucket_of_parameter_(parameters.plan().parameters.size(), -1),
      pending_(buckets_.size()),
      done_(device.make_event()),
      launched_(device.make_event()),
      sum_ns_(buckets_.size(), std::vector<std::int64_t>(kTimedSteps)) {
  if (options_.grad_dtype != DType::f32 && communicator.size() > 1) {
    std::int64_t largest = 0;
    for (const Bucket& bucket : buckets_) largest = std::max(largest, bucket.end - bucket.begin);
    wire_ = Tensor(communicator.allocator(device), {largest}, options_.grad_dtype);
  }
  std::size_t planned = frozen_in(parameters.plan());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    ready_.push_back(device.make_event());
    for (int i = 0; i < buckets_[b].parameters; ++i) {
      const auto id = parameters.plan().parameters[planned++].id;
      bucket_of_parameter_[static_cast<std::size_t>(id)] = static_cast<int>(b);
    }
  }
}

void GradientSync::rehearse() {
  if (communicator_.size() == 1) return;
  Stream& stream = device_.communication();
  std::int64_t largest = 0;
  for (const Bucket& bucket : buckets_) largest = std::max(largest, bucket.wire_bytes());
  communicator_.make_room(stream, largest);
  for (const Bucket& bucket : buckets_) {
    if (bucket.dtype == DType::f32 && bucket.between == DType::f32) continue;
    stream.run([this, &stream, count = bucket.end - bucket.begin] {
      const View gradients = parameters_.gradients().slice(0, count);
      cast(stream, gradients, wire_.view().slice(0, count));
      cast(stream, wire_.view().slice(0, count), gradients);
    });
  }
  stream.synchronize();
}

void GradientSync::begin_step() {
  next_ = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) pending_[b] = buckets_[b].parameters;
  if (options_.overlap) start_full_buckets();  // statistics on their own are ready
}

void GradientSync::gradient_ready(const nn::Parameter& parameter) {
  const int bucket = bucket_of_parameter_[static_cast<std::size_t>(parameter.id)];
  if (bucket < 0) return;
  --pending_[static_cast<std::size_t>(bucket)];
  if (options_.overlap) start_full_buckets();
}

void GradientSync::start_full_buckets() {
  while (next_ < buckets_.size() && pending_[next_] == 0) start(next_++);
}

void GradientSync::start(std::size_t index) {
  const Bucket& bucket = buckets_[index];
  tree_.merge_last(device_.compute(), parameters_, bucket.begin, bucket.end);
  if (communicator_.size() == 1) return;
  const Stopwatch watch;
  device_.compute().record(*ready_[index]);
  device_.communication().wait(*ready_[index]);
  sum(index);
  waited_seconds_ += watch.seconds();
}

// One wire buffer is enough: what is handed to the stream runs one after another.
void GradientSync::sum(std::size_t index) {
  const Bucket& bucket = buckets_[index];
  if (bucket.dtype == DType::f32) {
    sum_timed(index, parameters_.gradients().slice(bucket.begin, bucket.end));
    return;
  }
  Stream& stream = device_.communication();
  stream.run([this, &stream, &bucket] {
    cast(stream, parameters_.gradients().slice(bucket.begin, bucket.end),
         wire_.view().slice(0, bucket.end - bucket.begin));
  });
  sum_timed(index, wire_.view().slice(0, bucket.end - bucket.begin));
  stream.run([this, &stream, &bucket] {
    cast(stream, wire_.view().slice(0, bucket.end - bucket.begin),
         parameters_.gradients().slice(bucket.begin, bucket.end));
  });
}

void GradientSync::sum_timed(std::size_t index, const View& data) {
  Stream& stream = device_.communication();
  const bool timed = stream.in_order_with_host();
  if (timed) stream.run([this] { sum_begin_ns_ = now_ns(); });
  const Bucket& bucket = buckets_[index];
  if (bucket.between == DType::f32) {
    communicator_.all_reduce(stream, data, bucket.name);
  } else {
    communicator_.all_reduce_narrow_between(stream, data, wire_, bucket.name);
  }
  if (!timed) return;
  stream.run([this, index, slot = static_cast<std::size_t>(steps_ % kTimedSteps)] {
    sum_ns_[index][slot] = now_ns() - sum_begin_ns_;
  });
}

std::vector<double> GradientSync::median_seconds() const {
  std::vector<double> medians;
  const std::int64_t timed = std::min(steps_, kTimedSteps);
  if (timed == 0 || communicator_.size() == 1 || !device_.communication().in_order_with_host()) {
    return medians;
  }
  for (std::vector<std::int64_t> of_bucket : sum_ns_) {
    const auto middle = of_bucket.begin() + timed / 2;
    std::nth_element(of_bucket.begin(), middle, of_bucket.begin() + timed);
    medians.push_back(1e-9 * static_cast<double>(*middle));
  }
  return medians;
}

void GradientSync::finish() {
  start_full_buckets();
  require(next_ == buckets_.size(), "GradientSync::finish", "a gradient never became final");
  if (communicator_.size() == 1) return;
  const Stopwatch watch;
  device_.communication().record(*done_);
  device_.communication().flush();
  communicator_.require_alive();
  device_.compute().wait(*done_);
  ++steps_;
  waited_seconds_ += watch.seconds();
}

void GradientSync::graph_launched(bool is_new) {
  if (communicator_.size() == 1) return;
  Stream& stream = device_.communication();
  device_.compute().record(*launched_);  // not one of the events that the graph holds
  stream.wait(*launched_);
  communicator_.graph_launched(stream, wire_bytes(buckets_), "all buckets, in a graph");
  communicator_.require_alive();
  if (!is_new) ++steps_;  // finish() has counted the step that was captured
}

}  // namespace ringlet::train
