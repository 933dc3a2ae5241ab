// Data, weights and summaries by the formulas of tests/oracle/make_resnet_reference.py.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/memory_dataset.h"
#include "nn/row_major.h"
#include "tests/oracle/resnet_formula.h"
#include "tests/train/runs.h"

namespace ringlet::train {

/// Images of 8 x 8.
inline std::shared_ptr<const data::Dataset> small_images(std::int64_t count) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(count); ++i) {
    labels.push_back(oracle::formula_label(i));
    for (std::uint32_t y = 0; y < oracle::kResNetSide; ++y) {
      for (std::uint32_t x = 0; x < oracle::kResNetSide; ++x) {
        pixels.push_back(oracle::resnet_pixel(i, y, x));
      }
    }
  }
  data::DatasetInfo info{.name = "formula",
                         .channels = 1,
                         .height = oracle::kResNetSide,
                         .width = oracle::kResNetSide,
                         .target_names = {}};
  for (int k = 0; k < oracle::kFormulaClasses; ++k) info.target_names.push_back(std::to_string(k));
  return std::make_shared<const data::MemoryDataset>(info, std::move(pixels), std::move(labels));
}

inline std::vector<float> to_host(Device& device, const ConstView& view) {
  return nn::to_rows(device.compute(), view);
}

inline void start_by_formula(TrainLoop& loop, Device& device) {
  const nn::Registry& registry = loop.replica().parameters().registry();
  std::int64_t features = 0;
  for (const nn::Parameter* p : registry.parameters) {
    if (p->name == "fc.weight") features = p->shape[1];
  }
  for (const nn::Parameter* p : registry.parameters) {
    const auto values = oracle::resnet_start(p->name, p->shape, features);
    nn::from_rows(device.compute(), values.data(), p->value);
  }
}

/// The sum with signs tells of any difference, in terms of the norm. A gradient may be 0 but for
/// rounding: of a bias whose sum the next normalisation takes away.
inline void expect_summary(const std::vector<float>& actual, const nlohmann::json& expected,
                           const std::string& name, double tolerance) {
  const oracle::Summary found = oracle::summary_of(actual);
  const double norm = expected.at(name).at(0);
  const double apart = tolerance * std::max(norm, 0.05);
  EXPECT_NEAR(found.norm, norm, apart) << name;
  EXPECT_NEAR(found.sum, expected.at(name).at(1).get<double>(), apart) << name;
}

}  // namespace ringlet::train
