// The --out of a run: its files, its state, its model.
#include <algorithm>
#include <vector>

#include "app/inspect/format.h"
#include "app/inspect/parts.h"

namespace ringlet::app::inspect {

namespace fs = std::filesystem;

Table file_table(const fs::path& folder) {
  constexpr std::size_t kMost = 1000;
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(
           folder, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator() && files.size() < kMost;
       at.increment(error)) {
    if (at->is_regular_file(error)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  Table table{"files", {"file", "stored"}, {}};
  for (const fs::path& file : files) {
    table.rows.push_back(
        {file.lexically_relative(folder).string(), bytes_value(fs::file_size(file, error))});
  }
  return table;
}

namespace {

constexpr const char* kModel = "model.safetensors";

void add_model(Document& document, const fs::path& file) {
  train::SafetensorsStream stream(file);
  std::int64_t elements = 0, broken = 0;
  for (const TensorSummary& tensor : summarise_tensors(stream)) {
    elements += tensor.statistics.count();
    broken += tensor.statistics.nans() + tensor.statistics.infinities();
  }
  document.facts.push_back({"elements of the model", elements});
  document.facts.push_back({"broken numbers of the model", broken});
  if (broken > 0) document.warnings.push_back("model.safetensors holds NaN or infinite numbers");
}

bool recognises_run(const Subject& subject) {
  std::error_code error;
  if (!subject.is_folder) return false;
  for (const char* sign : {"state", kModel, "metrics.jsonl"}) {
    if (fs::exists(subject.path / sign, error)) return true;
  }
  return false;
}

Document describe_run(const Subject& subject, const Wishes&) {
  Document document{subject.path.string(), "run", {}, {}};
  std::error_code error;
  const bool has_model = fs::exists(subject.path / kModel, error);
  document.facts.push_back({"finished", has_model});
  if (has_model) add_model(document, subject.path / kModel);
  if (fs::exists(subject.path / "state", error)) {
    add_state(document, subject.path / "state");
  } else {
    document.facts.push_back({"can be resumed", false});
    document.warnings.push_back("there is no state/ to resume from");
  }
  document.tables.push_back(file_table(subject.path));
  return document;
}

}  // namespace

const Format kRun{recognises_run, describe_run};

}  // namespace ringlet::app::inspect
