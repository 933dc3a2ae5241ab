#include "train/batches/batch_source.h"

#include <algorithm>
#include <array>
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
      : loader_(dataset, sampler_of(*dataset, options), std::move(schedule), options.loader) {}
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
        memory_(device, dataset, options.loader),
        positions_(device, {options.per_step * kPositionBytes}, DType::u8),
        host_positions_(static_cast<std::size_t>(options.per_step)),
        uploader_(device, options.per_step * kPositionBytes) {
    requests_.reserve(host_positions_.size());
    copy_from_host(device.compute(), dataset.images().data(), images_);
    copy_from_host(device.compute(), dataset.targets().data(), targets_);
  }

  void begin_step(std::int64_t count) override {
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

  void repeat_step() override { taken_ = 0; }

  const data::Batch* next() override {
    if (taken_ == requests_.size()) begin_step(1);
    if (requests_.empty()) return nullptr;
    batch_ = memory_.batch(requests_[taken_++]);
    if (batch_.n > 0) {
      gather_batch(device_.compute(), spec_, images_, targets_, position(),
                   memory_.images(batch_.n), memory_.targets(batch_.n));
    }
    return &batch_;
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

  Device& device_;
  data::BatchSchedule schedule_;
  GatherSpec spec_;
  Tensor images_;   // u8 [S, C, H, W]
  Tensor targets_;  // i32 [S]
  BatchMemory memory_;
  Tensor positions_;  // u8 [per_step * 16]: a BatchPosition for each batch of the step
  std::vector<BatchPosition> host_positions_;
  Uploader uploader_;
  std::vector<data::BatchRequest> requests_;  // of this step
  std::size_t taken_ = 0;
  std::int64_t scheduled_ = 0;
  data::Batch batch_;
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
        memories_{BatchMemory(device, *dataset, options.loader),
                  BatchMemory(device, *dataset, options.loader)},
        pinned_(device),
        loader_(dataset, sampler_of(*dataset, options), std::move(schedule), options.loader,
                pinned_) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      copied_[slot] = device.make_event();
      used_[slot] = device.make_event();
    }
  }

  const data::Batch* next() override {
    Stream &compute = device_.compute(), &transfer = device_.transfer();
    if (turn_ > 0) {
      const std::size_t last = (turn_ - 1) % kSlots;
      compute.record(*used_[last]);  // by the work that was enqueued since
      copied_[last]->synchronize();  // the loader's memory is about to be used again
    }
    const data::Batch* host = loader_.next();
    if (host == nullptr) return nullptr;
    const std::size_t slot = turn_++ % kSlots;
    const BatchMemory& memory = memories_[slot];
    batch_ = memory.batch(host->request);
    if (batch_.n > 0) {
      transfer.wait(*used_[slot]);
      enqueue_copy_from_host(transfer, host->images, memory.images(batch_.n));
      enqueue_copy_from_host(transfer, host->targets, memory.targets(batch_.n));
      for (std::size_t i = 0; i < memory.fields(); ++i) {
        enqueue_copy_from_host(transfer, host->fields[i], memory.field(i, batch_.n));
      }
      transfer.record(*copied_[slot]);
      compute.wait(*copied_[slot]);
    }
    return &batch_;
  }

  std::exception_ptr failure_within(std::int64_t batches) override {
    return loader_.failure_within(batches);
  }

 private:
  static constexpr std::size_t kSlots = 2;  // one is trained on while the other is filled

  Device& device_;
  std::array<BatchMemory, kSlots> memories_;
  PinnedMemory pinned_;
  data::Loader loader_;
  std::array<std::unique_ptr<Event>, kSlots> copied_, used_;
  std::size_t turn_ = 0;
  data::Batch batch_;
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
