// What the formats share: the tensors of a safetensors file, summarised while they stream by; the
// folders of a run; and grey images as text, two rows of pixels a line, since letters are about
// twice as high as wide.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/inspect/document.h"
#include "app/inspect/statistics.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::app::inspect {

struct TensorSummary {
  train::TensorSpec spec;
  std::uint64_t bytes = 0;
  Statistics statistics;
};

/// Reads all tensors, in their order in the file, in the memory of one piece. Throws FileError.
std::vector<TensorSummary> summarise_tensors(train::SafetensorsStream& file);

/// Adds what the state in `folder` (which holds state.json) says, and whether a run can go on from
/// it. Reads only: what a killed writer left is not tidied up. Throws FileError.
void add_state(Document& document, const std::filesystem::path& folder);

/// Every file below `folder` with its size, folders in order of their names.
Table file_table(const std::filesystem::path& folder);

/// `images` holds whole images of height x width, row-major, 0 black. They are drawn side by side,
/// as many as fit into a terminal, then below; larger ones are averaged down.
std::string draw(std::span<const std::uint8_t> images, std::int64_t height, std::int64_t width);

}  // namespace ringlet::app::inspect
