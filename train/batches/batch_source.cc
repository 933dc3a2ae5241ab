#include "train/batches/batch_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/gather_batch.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"

namespace ringlet::train {

namespace {

Sampler sampler_of(const data::Dataset& dataset, const BatchOptions& options) {
  return {dataset.size(), options.seed, options.shuffle};
}

Layout layout_of(const data::LoaderOptions& options) {
  switch (options.layout) {
    case data::BatchLayout::lanes16:
      return Layout::lanes;
    case data::BatchLayout::nhwc:
      return Layout::nhwc;
    case data::BatchLayout::nchw:
      break;
  }
  return Layout::nchw;
}

Shape images_shape(const data::Dataset& dataset, std::int64_t samples) {
  return {samples, dataset.channels(), dataset.height(), dataset.width()};
}

/// Whether gather_batch can make the batches: it takes pixels that are in memory as they are, and
/// normalises all channels alike.
bool can_be_resident(const data::Dataset& dataset, const data::LoaderOptions& options) {
  return !dataset.images().empty() && dataset.fields().empty() &&
         options.augment.kind == data::Augment::none &&
         data::pixel_scales(options.mean, options.deviation).size() == 1;
}

/// The loader hands out what is trained on.
data::LoaderOptions held_by(const BatchOptions& options) {
  data::LoaderOptions loader = options.loader;
  loader.held = options.held;
  return loader;
}

/// Device memory for a batch of up to `max_batch` samples.
class BatchMemory {
 public:
  BatchMemory(Device& device, const data::Dataset& dataset, const data::LoaderOptions& options)
      : images_(device, images_shape(dataset, options.max_batch), DType::f32, layout_of(options)),
        targets_(device, {options.max_batch}, DType::i32) {
    for (const data::Field& field : dataset.fields()) {
      fields_.emplace_back(device, Shape{options.max_batch, field.numbers()});
    }
  }

  View images(std::int64_t samples) const {
    Shape shape = images_.shape();
    return {images_.f32(),
            {samples, shape[1], shape[2], shape[3]},
            DType::f32,
            images_.view().layout()};
  }
  View targets(std::int64_t samples) const { return targets_.view().slice(0, samples); }
  std::size_t fields() const { return fields_.size(); }
  View field(std::size_t i, std::int64_t samples) const {
    return {fields_[i].f32(), {samples, fields_[i].shape()[1]}, DType::f32};
  }
  data::Batch batch(const data::BatchRequest& request) const {
    data::Batch batch{images_.f32(), targets_.view().as<std::int32_t>(), request.size(), request};
    for (std::size_t i = 0; i < fields_.size(); ++i) batch.fields[i] = fields_[i].f32();
    return batch;
  }

 private:
  Tensor images_;
  Tensor targets_;
  std::vector<Tensor> fields_;
};

class HostBatches final : public BatchSource {
 public:
  HostBatches(const std::shared_ptr<const data::Dataset>& dataset, data::BatchSchedule schedule,
              const BatchOptions& options)
      : loader_(dataset, sampler_of(*dataset, options), std::move(schedule), held_by(options)) {}
  const data::Batch* next() override { return loader_.next(); }
  std::exception_ptr failure_within(std::int64_t batches) override {
    return loader_.failure_within(batches);
  }

 private:
  data::Loader loader_;
};

class ResidentBatches final : public BatchSource {
 public:
  ResidentBatches(Device& device, const data::Dataset& dataset, data::BatchSchedule schedule,
                  const BatchOptions& options)
      : device_(device),
        schedule_(std::move(schedule)),
        spec_{sampler_of(dataset, options), {options.loader.mean[0], options.loader.deviation[0]}},
        images_(device, images_shape(dataset, dataset.size()), DType::u8),
        targets_(device, {dataset.size()}, DType::i32),
        positions_(device, {options.per_step * kPositionBytes}, DType::u8),
        host_positions_(static_cast<std::size_t>(options.per_step)),
        uploader_(device, options.per_step * kPositionBytes) {
    requests_.reserve(host_positions_.size());
    require(options.held > 0, "BatchOptions::held", "is at least 1");
    for (int i = 0; i < options.held; ++i) memories_.emplace_back(device, dataset, options.loader);
    batches_.resize(memories_.size());
    copy_from_host(device.compute(), dataset.images().data(), images_);
    copy_from_host(device.compute(), dataset.targets().data(), targets_);
  }

  void begin_step(std::int64_t count) override {
    announce(count);
    turn_ = 0;
  }

  void repeat_step() override { taken_ = turn_ = 0; }

  const data::Batch* next() override {
    if (taken_ == requests_.size()) announce(1);
    if (requests_.empty()) return nullptr;
    const std::size_t slot = turn_++ % memories_.size();
    const BatchMemory& memory = memories_[slot];
    data::Batch& batch = batches_[slot] = memory.batch(requests_[taken_++]);
    if (batch.n > 0) {
      gather_batch(device_.compute(), spec_, images_, targets_, position(), memory.images(batch.n),
                   memory.targets(batch.n));
    }
    return &batch;
  }

  ConstView position() const override {
    // Before the first batch its position, which a rehearsal reads for random numbers of no
    // account.
    const auto end = std::max(static_cast<std::int64_t>(taken_), std::int64_t{1}) * kPositionBytes;
    return positions_.view().slice(end - kPositionBytes, end);
  }

  bool capturable() const override { return true; }

 private:
  static constexpr std::int64_t kPositionBytes = sizeof(BatchPosition);

  void announce(std::int64_t count) {
    requests_.clear();
    taken_ = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto request = schedule_(scheduled_);
      if (!request) break;
      ++scheduled_;
      host_positions_[requests_.size()] = {request->epoch, request->begin};
      requests_.push_back(*request);
    }
    if (requests_.empty()) return;
    const auto bytes = static_cast<std::int64_t>(requests_.size()) * kPositionBytes;
    uploader_.upload(device_.compute(), host_positions_.data(), positions_.view().slice(0, bytes));
  }

  Device& device_;
  data::BatchSchedule schedule_;
  GatherSpec spec_;
  Tensor images_;                      // u8 [S, C, H, W]
  Tensor targets_;                     // i32 [S]
  std::vector<BatchMemory> memories_;  // used in turn
  Tensor positions_;  // u8 [per_step * 16]: a BatchPosition for each batch of the step
  std::vector<BatchPosition> host_positions_;
  Uploader uploader_;
  std::vector<data::BatchRequest> requests_;  // of this step
  std::size_t taken_ = 0;
  std::size_t turn_ = 0;  // of the memories, in this step
  std::int64_t scheduled_ = 0;
  std::vector<data::Batch> batches_;  // by memory
};

/// Memory of the host that the device copies from by itself.
class PinnedMemory final : public Allocator {
 public:
  explicit PinnedMemory(Device& device) : device_(device) {}
  void* allocate(std::int64_t bytes) override { return device_.allocate_host(bytes); }
  void deallocate(void* address, std::int64_t /*bytes*/) noexcept override {
    device_.deallocate_host(address);
  }

 private:
  Device& device_;
};

class StreamedBatches final : public BatchSource {
 public:
  StreamedBatches(Device& device, const std::shared_ptr<const data::Dataset>& dataset,
                  data::BatchSchedule schedule, const BatchOptions& options)
      : device_(device),
        transfer_(device.transfer()),  // made here: not behind the first collective
        held_(static_cast<std::size_t>(options.held)),
        pinned_(device),
        loader_(dataset, sampler_of(*dataset, options), std::move(schedule), options.loader,
                pinned_) {
    require(options.held > 0, "BatchOptions::held", "is at least 1");
    for (std::size_t slot = 0; slot <= held_; ++slot) {
      memories_.emplace_back(device, *dataset, options.loader);
      copied_.push_back(device.make_event());
      used_.push_back(device.make_event());
    }
    batches_.resize(memories_.size());
  }

  const data::Batch* next() override {
    Stream& compute = device_.compute();
    const std::size_t slots = memories_.size();
    // The work that was enqueued until now is the last with the batch that is held no longer.
    if (turn_ >= held_) compute.record(*used_[(turn_ - held_) % slots]);
    // The loader's memory is about to be used again.
    if (turn_ > 0) copied_[(turn_ - 1) % slots]->synchronize();
    const data::Batch* host = loader_.next();
    if (host == nullptr) return nullptr;
    const std::size_t slot = turn_++ % slots;
    const BatchMemory& memory = memories_[slot];
    data::Batch& batch = batches_[slot] = memory.batch(host->request);
    if (batch.n > 0) {
      transfer_.wait(*used_[slot]);
      enqueue_copy_from_host(transfer_, host->images, memory.images(batch.n));
      enqueue_copy_from_host(transfer_, host->targets, memory.targets(batch.n));
      for (std::size_t i = 0; i < memory.fields(); ++i) {
        enqueue_copy_from_host(transfer_, host->fields[i], memory.field(i, batch.n));
      }
      transfer_.record(*copied_[slot]);
      compute.wait(*copied_[slot]);
    }
    return &batch;
  }

  std::exception_ptr failure_within(std::int64_t batches) override {
    return loader_.failure_within(batches);
  }

 private:
  Device& device_;
  Stream& transfer_;
  const std::size_t held_;
  std::vector<BatchMemory> memories_;  // those that are held, and one that is filled meanwhile
  PinnedMemory pinned_;
  data::Loader loader_;
  std::vector<std::unique_ptr<Event>> copied_, used_;  // by memory
  std::size_t turn_ = 0;
  std::vector<data::Batch> batches_;  // by memory
};

}  // namespace

data::BatchLayout batch_layout(Layout layout) {
  if (layout == Layout::lanes) return data::BatchLayout::lanes16;
  return layout == Layout::nhwc ? data::BatchLayout::nhwc : data::BatchLayout::nchw;
}

std::unique_ptr<BatchSource> make_host_batches(const std::shared_ptr<const data::Dataset>& dataset,
                                               data::BatchSchedule schedule,
                                               const BatchOptions& options) {
  return std::make_unique<HostBatches>(dataset, std::move(schedule), options);
}

std::unique_ptr<BatchSource> make_resident_batches(Device& device, const data::Dataset& dataset,
                                                   data::BatchSchedule schedule,
                                                   const BatchOptions& options) {
  require(can_be_resident(dataset, options.loader), "resident batches",
          "are of data in memory, all channels normalised alike; take streamed ones");
  return std::make_unique<ResidentBatches>(device, dataset, std::move(schedule), options);
}

std::unique_ptr<BatchSource> make_streamed_batches(
    Device& device, const std::shared_ptr<const data::Dataset>& dataset,
    data::BatchSchedule schedule, const BatchOptions& options) {
  return std::make_unique<StreamedBatches>(device, dataset, std::move(schedule), options);
}

std::unique_ptr<BatchSource> make_batch_source(Device& device,
                                               const std::shared_ptr<const data::Dataset>& dataset,
                                               data::BatchSchedule schedule,
                                               const BatchOptions& options) {
  if (device.compute().in_order_with_host())
    return make_host_batches(dataset, std::move(schedule), options);
  const auto bytes = static_cast<std::int64_t>(dataset->images().size_bytes());
  if (can_be_resident(*dataset, options.loader) && bytes <= device.free_bytes() / 4) {
    return make_resident_batches(device, *dataset, std::move(schedule), options);
  }
  return make_streamed_batches(device, dataset, std::move(schedule), options);
}

}  // namespace ringlet::train
