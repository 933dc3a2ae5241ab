// Predictor: a trained model on a device, which computes its outputs: logits for images.
//
//   const auto device = open_device(DeviceId{}, {});
//   Predictor predictor(*device, "runs/demo/model.safetensors");
//   const std::vector<float> logits = predictor.logits(data.test);   // [N, K]
//
// The images go through the model in passes of a fixed size; a dry run finds the memory for one
// before any is allocated. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/stop_request.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "kernels/memory.h"
#include "nn/layer.h"
#include "nn/parameters.h"
#include "nn/tape.h"
#include "train/files/load_model.h"
#include "train/files/model_info.h"
#include "train/task/replica_spec.h"

namespace ringlet::train {

struct PredictorOptions {
  std::int64_t batch = 250;  ///< samples of a pass, at most
  LayoutChoice layout = LayoutChoice::automatic;
  Precision precision = Precision::f32;  ///< of activations and products
  bool emulate_precision = false;        ///< see Execution
  /// Weights that are not finite may be taken, to look at what they compute.
  NonFinite nonfinite = NonFinite::refused;
  /// What the model's last layer, a product with a weight [K, D], takes of each sample: [N, D],
  /// instead of what it answers.
  bool features = false;
  StopRequest stop_requested{};  ///< asked once a pass; then Stopped is thrown
};

class Predictor {
 public:
  /// Loads a file of Ringlet's. Throws FileError, also for one that does not say what it holds.
  Predictor(Device& device, const std::filesystem::path& file,
            const PredictorOptions& options = {});
  /// Loads a file, PyTorch's too, that holds what `info` says. Throws FileError as load_model().
  Predictor(Device& device, const std::filesystem::path& file, const ModelInfo& info,
            const PredictorOptions& options = {});

  /// Loads the model of a task of one's own, which its file says nothing of: `spec` of the run
  /// (RunSetup::replica), and `loader` for how its images are normalised (RunSetup::loader).
  Predictor(Device& device, const std::filesystem::path& file, const ReplicaSpec& spec,
            const data::LoaderOptions& loader, const PredictorOptions& options = {});

  /// What the file says of the model; empty of a task of one's own.
  const ModelInfo& info() const { return info_; }
  /// Numbers of a sample's answer: K, or D of the features.
  std::int64_t width() const { return width_; }
  /// Samples of a pass, at most.
  std::int64_t batch() const { return batch_; }
  /// Of images on the device (choose_layout()).
  Layout layout() const { return layout_; }

  /// The model's outputs, [N, K] row-major: before the softmax, where it classifies; or features
  /// (PredictorOptions::features). Of a task's tensors those that its output() asks for have to be
  /// there. Throws ContractError for images of another size than the model's.
  std::vector<float> logits(const std::shared_ptr<const data::Dataset>& dataset);
  /// The same pass by pass, in the set's order: no more than a pass is kept in memory.
  void each_pass(const std::shared_ptr<const data::Dataset>& dataset,
                 const std::function<void(std::span<const float> logits)>& take);
  /// The same for images [N, C, H, W] as data/images/prepare_image.h makes them.
  std::vector<float> logits(std::span<const std::uint8_t> images);

 private:
  std::vector<float> run_pass(const data::Dataset& dataset, const data::Batch& batch);
  void find_head(const nn::Registry& registry);
  std::vector<float> features_of(const nn::Batch& batch, std::int64_t samples);

  Device& device_;
  ModelInfo info_;
  ReplicaSpec spec_;
  data::PerChannel mean_, deviation_;
  std::shared_ptr<const Task> task_;
  std::int64_t batch_;
  std::int64_t width_ = 0;
  std::string head_;  // the last layer's name, where its features are asked for
  StopRequest stop_requested_;
  Layout layout_;
  std::unique_ptr<nn::Layer> model_;
  std::unique_ptr<nn::Parameters> parameters_;
  std::unique_ptr<Arena> activations_;
  std::unique_ptr<nn::Tape> tape_;
};

}  // namespace ringlet::train
