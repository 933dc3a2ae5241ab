// BatchSource: where a replica's batches come from, in the memory of its device.
//
//   host       the loader's batches as they are (data/loader.h): for a device in host memory
//   resident   the data set lies on the device as bytes and a kernel gathers each batch, so that a
//              step needs nothing from the host but where it stands
//   streamed   the loader's batches come through pinned memory, each while the one before it is
//              being trained on: for a data set that does not fit on the GPU, is not in memory,
//              is varied, has fields, or has a normalisation for each channel
//
// All three give the same bits.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "data/loader.h"
#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet::train {

class BatchSource {
 public:
  BatchSource() = default;
  virtual ~BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  /// Announces that the next `count` batches belong to one step, which starts here. Sends what
  /// these batches need from the host. Batches that were announced before and not taken are
  /// skipped.
  virtual void begin_step(std::int64_t count) { (void)count; }

  /// next() gives the batches of this step once more, as nothing was made of them. For capturable()
  /// sources.
  virtual void repeat_step() {}

  /// The next batch in the schedule's order, for work that is enqueued on the compute stream after
  /// this call; null at the schedule's end. It stays until the work enqueued before the
  /// BatchOptions::held-th call from here has run. Throws what the loader throws.
  virtual const data::Batch* next() = 0;

  /// As Loader::failure_within().
  virtual std::exception_ptr failure_within(std::int64_t batches) {
    (void)batches;
    return nullptr;
  }

  /// Position of the batch that next() gave, as a BatchPosition in device memory. Absent where only
  /// the host knows it.
  virtual ConstView position() const { return {}; }

  /// Whether next() launches the same kernels on the same memory for each batch of one size, so
  /// that a captured graph may be replayed after begin_step() instead.
  virtual bool capturable() const { return false; }
};

struct BatchOptions {
  data::LoaderOptions loader;
  std::uint64_t seed = 0;  ///< of the order
  bool shuffle = true;
  std::int64_t per_step = 1;  ///< batches of a step, at most
  int held = 1;               ///< the latest batches, which all stay; at least 1
};

/// A loader's name for the layout.
data::BatchLayout batch_layout(Layout layout);

/// Batches of `dataset` by `schedule`, for work on `device`: from the host where the device is the
/// host, resident where the set takes no more than a quarter of the free memory, else streamed.
std::unique_ptr<BatchSource> make_batch_source(Device& device,
                                               const std::shared_ptr<const data::Dataset>& dataset,
                                               data::BatchSchedule schedule,
                                               const BatchOptions& options);

/// The three by themselves. Resident ones throw ContractError for a set that is not in memory and
/// for a normalisation that differs by channel.
std::unique_ptr<BatchSource> make_host_batches(const std::shared_ptr<const data::Dataset>& dataset,
                                               data::BatchSchedule schedule,
                                               const BatchOptions& options);
std::unique_ptr<BatchSource> make_resident_batches(Device& device, const data::Dataset& dataset,
                                                   data::BatchSchedule schedule,
                                                   const BatchOptions& options);
std::unique_ptr<BatchSource> make_streamed_batches(
    Device& device, const std::shared_ptr<const data::Dataset>& dataset,
    data::BatchSchedule schedule, const BatchOptions& options);

}  // namespace ringlet::train
