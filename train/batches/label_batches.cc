#include "train/batches/label_batches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/host_copy.h"
#include "kernels/memory.h"

namespace ringlet::train {

namespace {

class LabelBatches final : public BatchSource {
 public:
  LabelBatches(Device& device, const std::shared_ptr<const data::Dataset>& dataset,
               data::BatchSchedule schedule, const BatchOptions& options, bool with_labels)
      : device_(device),
        dataset_(dataset),
        schedule_(std::move(schedule)),
        sampler_(dataset->size(), options.seed, options.shuffle),
        host_(static_cast<std::size_t>(with_labels ? options.loader.max_batch : 0)),
        uploader_(device, std::max<std::int64_t>(1, std::ssize(host_) * size_of(DType::i32))),
        batches_(static_cast<std::size_t>(options.held)) {
    for (int i = 0; with_labels && i < options.held; ++i) {
      targets_.emplace_back(device, Shape{options.loader.max_batch}, DType::i32);
    }
  }

  const data::Batch* next() override {
    const auto request = schedule_(static_cast<std::int64_t>(taken_));
    if (!request) return nullptr;
    const std::size_t slot = taken_++ % batches_.size();
    data::Batch& batch = batches_[slot] = {.n = request->size(), .request = *request};
    if (batch.n > 0 && !targets_.empty()) {
      take_labels(*request, targets_[slot].view().slice(0, batch.n));
      batch.targets = targets_[slot].view().as<std::int32_t>();
    }
    return &batch;
  }

 private:
  void take_labels(const data::BatchRequest& request, const View& labels) {
    const auto targets = dataset_->targets();
    for (std::int64_t i = 0; i < request.size(); ++i) {
      const std::int64_t sample = sampler_.index(request.epoch, request.begin + i);
      host_[static_cast<std::size_t>(i)] = targets[static_cast<std::size_t>(sample)];
    }
    uploader_.upload(device_.compute(), host_.data(), labels);
  }

  Device& device_;
  std::shared_ptr<const data::Dataset> dataset_;
  data::BatchSchedule schedule_;
  Sampler sampler_;
  std::vector<std::int32_t> host_;
  Uploader uploader_;
  std::vector<Tensor> targets_;  // those that are held
  std::vector<data::Batch> batches_;
  std::size_t taken_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> make_label_batches(Device& device,
                                                const std::shared_ptr<const data::Dataset>& dataset,
                                                data::BatchSchedule schedule,
                                                const BatchOptions& options, bool with_labels) {
  return std::make_unique<LabelBatches>(device, dataset, std::move(schedule), options, with_labels);
}

std::unique_ptr<BatchSource> make_stage_batches(Device& device, bool reads_samples, bool is_last,
                                                const std::shared_ptr<const data::Dataset>& dataset,
                                                data::BatchSchedule schedule,
                                                const BatchOptions& options) {
  if (reads_samples) return make_batch_source(device, dataset, std::move(schedule), options);
  return make_label_batches(device, dataset, std::move(schedule), options, is_last);
}

}  // namespace ringlet::train
