#include "train/gradient_sync.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/stopwatch.h"

namespace ringlet::train {

namespace {

std::string bucket_name(std::size_t index, const std::string& first, const std::string& last) {
  const std::string content = first == last ? first : first + " .. " + last;
  return "bucket " + std::to_string(index) + " (" + content + ")";
}

}  // namespace

std::vector<Bucket> plan_buckets(const nn::Plan& plan, std::int64_t bucket_kb) {
  const std::int64_t wanted = bucket_kb * 1024 / size_of(DType::f32);
  std::vector<Bucket> buckets;
  Bucket open;
  std::string first;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    if (open.parameters == 0) first = plan.parameters[i].name;
    ++open.parameters;
    const bool last = i + 1 == plan.parameters.size();
    open.end = last ? plan.elements + nn::Parameters::kStatistics : plan.parameters[i + 1].begin;
    if (last || open.end - open.begin >= wanted) {
      open.name = bucket_name(buckets.size(), first, plan.parameters[i].name);
      buckets.push_back(open);
      open = {.begin = open.end, .end = open.end};
    }
  }
  return buckets;
}

std::string strategies_in_words(const comm::Communicator& communicator,
                                const std::vector<Bucket>& buckets) {
  const std::string name = communicator.strategy();
  std::vector<std::string> picked;
  for (const Bucket& bucket : buckets) {
    const std::int64_t bytes = (bucket.end - bucket.begin) * size_of(DType::f32);
    const std::string of_bucket = communicator.strategy_for(bytes);
    if (std::find(picked.begin(), picked.end(), of_bucket) == picked.end()) {
      picked.push_back(of_bucket);
    }
  }
  if (picked.size() == 1 && picked.front() == name) return name;
  return fmt::format("{} ({})", name, fmt::join(picked, ", "));
}

GradientSync::GradientSync(Device& device, comm::Communicator& communicator,
                           const nn::Parameters& parameters, const ShardTree& tree,
                           const Options& options)
    : device_(device),
      communicator_(communicator),
      parameters_(parameters),
      tree_(tree),
      options_(options),
      buckets_(plan_buckets(parameters.plan(), options.bucket_kb)),
      bucket_of_parameter_(parameters.plan().parameters.size()),
      pending_(buckets_.size()),
      done_(device.make_event()) {
  std::size_t planned = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    ready_.push_back(device.make_event());
    for (int i = 0; i < buckets_[b].parameters; ++i) {
      const auto id = parameters.plan().parameters[planned++].id;
      bucket_of_parameter_[static_cast<std::size_t>(id)] = static_cast<int>(b);
    }
  }
}

void GradientSync::begin_step() {
  next_ = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) pending_[b] = buckets_[b].parameters;
}

void GradientSync::gradient_ready(const nn::Parameter& parameter) {
  --pending_[static_cast<std::size_t>(
      bucket_of_parameter_[static_cast<std::size_t>(parameter.id)])];
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
  communicator_.all_reduce(device_.communication(),
                           parameters_.gradients().slice(bucket.begin, bucket.end), bucket.name);
  waited_seconds_ += watch.seconds();
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
  waited_seconds_ += watch.seconds();
}

}  // namespace ringlet::train
