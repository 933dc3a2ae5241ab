// Batches of a later stage of a model, which gets its input from the stage before: how many samples
// there are and where they stand; for the last stage their labels, too, in its device's memory. No
// picture is read: labels are in memory, whoever reads the pictures.
#pragma once

#include <memory>

#include "train/batches/batch_source.h"

namespace ringlet::train {

/// `with_labels`: else batches have none. The options' loader says the largest batch alone.
std::unique_ptr<BatchSource> make_label_batches(Device& device,
                                                const std::shared_ptr<const data::Dataset>& dataset,
                                                data::BatchSchedule schedule,
                                                const BatchOptions& options, bool with_labels);

/// Those of any stage: whole samples, as the first one needs them, or else labels alone for the
/// last one, and for the others nothing.
std::unique_ptr<BatchSource> make_stage_batches(Device& device, bool reads_samples, bool is_last,
                                                const std::shared_ptr<const data::Dataset>& dataset,
                                                data::BatchSchedule schedule,
                                                const BatchOptions& options);

}  // namespace ringlet::train
