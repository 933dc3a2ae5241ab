// Weights, as safetensors or as torch.save() writes them: what each tensor holds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "app/inspect/format.h"
#include "app/inspect/parts.h"
#include "app/inspect/statistics.h"
#include "train/files/foreign_format.h"
#include "train/files/safetensors_stream.h"
#include "train/files/state_json.h"

namespace ringlet::app::inspect {

std::vector<TensorSummary> summarise_tensors(train::SafetensorsStream& file) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 16;  // a multiple of every width
  std::uint64_t largest = 0;
  for (const train::StoredTensor& tensor : file.header().tensors) {
    largest = std::max(largest, tensor.end - tensor.begin);
  }
  std::vector<std::byte> piece(std::min<std::uint64_t>(kPieceBytes, largest));
  std::vector<double> numbers(piece.size());
  std::vector<TensorSummary> summaries;
  for (const train::StoredTensor& tensor : file.header().tensors) {
    TensorSummary& summary = summaries.emplace_back();
    summary.spec = tensor.spec;
    summary.bytes = tensor.end - tensor.begin;
    const auto width =
        static_cast<std::uint64_t>(train::safetensors_dtype_bytes(tensor.spec.dtype));
    for (std::uint64_t done = 0; done < summary.bytes;) {
      const std::uint64_t size = std::min<std::uint64_t>(kPieceBytes, summary.bytes - done);
      file.read(piece.data(), size);
      const std::span<double> decoded(numbers.data(), size / width);
      if (decode(tensor.spec.dtype, {piece.data(), size}, decoded)) {
        summary.statistics.add(decoded);
      }
      done += size;
    }
  }
  return summaries;
}

namespace {

Table metadata_table(const train::SafetensorsHeader& header) {
  Table table{"metadata", {"key", "value"}, {}};
  for (const auto& [key, value] : header.metadata) table.rows.push_back({key, value});
  return table;
}

Table tensor_table(const std::vector<TensorSummary>& tensors) {
  Table table{"tensors",
              {"name", "dtype", "shape", "elements", "min", "max", "mean", "deviation", "zeros",
               "NaN", "Inf"},
              {}};
  for (const TensorSummary& tensor : tensors) {
    const Statistics& s = tensor.statistics;
    const auto number = [](double value) { return std::isnan(value) ? Value() : Value(value); };
    table.rows.push_back({tensor.spec.name, tensor.spec.dtype, tensor.spec.shape, s.count(),
                          number(s.minimum()), number(s.maximum()), number(s.mean()),
                          number(s.deviation()), s.zeros(), s.nans(), s.infinities()});
  }
  return table;
}

bool recognises_safetensors(const Subject& subject) {
  if (train::is_torch_archive(subject.head)) return !subject.gzipped;
  std::uint64_t length = 0;
  if (subject.is_folder || subject.gzipped || subject.head.size() <= sizeof length) return false;
  std::memcpy(&length, subject.head.data(), sizeof length);
  return subject.head[sizeof length] == '{' && length <= train::kMaxSafetensorsHeader;
}

Document describe_safetensors(const Subject& subject, const Wishes&) {
  const train::FileSums sums = train::sums_beside(subject.path);
  train::SafetensorsStream file(subject.path);
  const std::vector<TensorSummary> tensors = summarise_tensors(file);
  const bool is_torch = file.header().is_torch;
  Document document{subject.path.string(), is_torch ? "PyTorch's own" : "safetensors", {}, {}};
  std::int64_t elements = 0, nans = 0, infinities = 0;
  std::uint64_t bytes = 0;
  for (const TensorSummary& tensor : tensors) {
    elements += tensor.statistics.count();
    nans += tensor.statistics.nans();
    infinities += tensor.statistics.infinities();
    bytes += tensor.bytes;
  }
  document.facts = {{"stored", bytes_value(subject.stored)}};
  if (!is_torch) document.facts.push_back({"header", bytes_value(subject.stored - bytes)});
  if (!file.header().under.empty()) document.facts.push_back({"under", file.header().under});
  document.facts.insert(document.facts.end(),
                        {{"tensor count", static_cast<std::int64_t>(tensors.size())},
                         {"elements", elements},
                         {"NaN", nans},
                         {"Inf", infinities}});
  document.tables = {metadata_table(file.header()), tensor_table(tensors)};
  if (nans + infinities > 0) {
    document.warnings.push_back(
        "there are numbers that are none (NaN or infinite); a model with "
        "these predicts nothing");
  }
  try {
    train::require_sum(sums, subject.path, file.sum());
  } catch (const FileError& error) {
    const bool is_its_state = train::sums_beside(subject.path) == sums;  // no live run's next one
    if (is_its_state) document.warnings.emplace_back(error.what());
  }
  return document;
}

}  // namespace

const Format kSafetensors{recognises_safetensors, describe_safetensors};

}  // namespace ringlet::app::inspect
