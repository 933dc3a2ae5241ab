// Images of a data set inside a page.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace ringlet::app::report {

/// Image `index` as a PNG in a data URI. One channel becomes grey, three colours; of any other
/// number the first alone is shown, in grey.
Html image_uri(const data::Dataset& images, std::int64_t index);

}  // namespace ringlet::app::report
