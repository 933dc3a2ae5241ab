// The answers of a run's model on the test data: how often it takes which class for which, and the
// mistakes that it was surest of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/report/html.h"
#include "app/report/run_folder.h"
#include "base/stop_request.h"
#include "data/dataset.h"

namespace ringlet::app::report {

/// A test image that the model took for something else.
struct Mistake {
  std::int64_t index = 0;  ///< in the test data
  std::int64_t label = 0, answer = 0;
  double label_probability = 0, answer_probability = 0;
};

struct TestResults {
  std::shared_ptr<const data::Dataset> images;
  /// [label * classes + answer]: how many.
  std::vector<std::int64_t> confusion;
  /// The mistakes in which the model gave the true class the least probability, the worst first.
  std::vector<Mistake> worst;

  std::int64_t classes() const { return images->target_values(); }
  std::int64_t count(std::int64_t label, std::int64_t answer) const {
    return confusion[static_cast<std::size_t>(label * classes() + answer)];
  }
  std::int64_t samples_of(std::int64_t label) const;
  std::int64_t right() const;
};

/// Tallies logits [N, classes] of all the test images, in their order; keeps the `keep` worst
/// mistakes.
TestResults tally(std::shared_ptr<const data::Dataset> images, const std::vector<float>& logits,
                  std::size_t keep);

/// Opens the run's data and computes its model's answers. `data_dir`: where the data lies now;
/// empty: where it lay then. Throws Error where that cannot be done: no weights, no data, or other
/// data than then. Throws Stopped where `stop` says so.
TestResults test_model(const RunFolder& run, const std::string& data_dir,
                       const StopRequest& stop = {});

/// Image `index` as a PNG in a data URI. One channel becomes grey, three colours; of any other
/// number the first alone is shown, in grey.
Html image_uri(const data::Dataset& images, std::int64_t index);

}  // namespace ringlet::app::report
