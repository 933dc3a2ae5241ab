#include "app/commands/run_claim.h"

#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/commands/checkpoint.h"
#include "app/commands/former_run.h"
#include "base/files/atomic_file.h"
#include "base/files/line_file.h"
#include "train/files/load_model.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// Whether both name the same folder, which need not exist.
bool same_folder(const fs::path& a, const fs::path& b) {
  return fs::weakly_canonical(a / "") == fs::weakly_canonical(b / "");
}

/// The folder of the run that `resume` names: that folder, or its state.
fs::path resumed_run(const fs::path& resume) {
  const fs::path named = resume.has_filename() ? resume : resume.parent_path();
  return fs::exists(named / "state.json") && !fs::exists(named / "state") ? run_of(named) : named;
}

/// Whether a run goes on in its own folder.
bool goes_on(const train::Files& files) {
  return !files.resume.empty() &&
         (files.out.empty() || same_folder(files.out, resumed_run(files.resume)));
}

/// Whether a start of this run was ended before it saved anything. A folder that holds a model, and
/// no state, holds another run.
bool is_begun(const fs::path& out) {
  return fs::exists(out / "config.toml") && !fs::exists(out / "model.safetensors");
}

/// Whether --metrics names the lines that the run writes anyway.
bool names_own_metrics(const train::Files& files) {
  return !files.out.empty() &&
         fs::weakly_canonical(files.metrics) == fs::weakly_canonical(files.out / "metrics.jsonl");
}

}  // namespace

void RunClaim::resumed(const train::Files& files) {
  if (files.resume.empty()) return;
  resumes_by_itself_ = resumes_by_itself(files);
  const fs::path run = resumes_by_itself_ ? files.out : resumed_run(files.resume);
  if ((resumes_by_itself_ || goes_on(files)) && fs::is_directory(run)) {
    lock_ = std::make_unique<train::RunLock>(run);
    AtomicDirectory::recover(run / "state");
  } else {
    train::RunLock::require_free(run);
  }
}

void RunClaim::outputs(const train::TrainOptions& options, int processes) {
  const train::Files& files = options.files;
  Outputs outputs(command_, files.force);
  outputs.reads("--init", train::model_file_of(files.init));
  outputs.reads_data(options);
  if (!goes_on(files)) outputs.reads_run("--resume", files.resume);
  for (int process = 0; process < processes && !files.trace.empty(); ++process) {
    outputs.writes("--trace", file_of_process(files.trace, process));
  }
  const bool began_before = resumes_by_itself_ && is_begun(files.out);
  if (!names_own_metrics(files)) {
    outputs.writes_lines("--metrics", files.metrics, !files.resume.empty() || began_before);
  }
  if (!files.metrics.empty() && is_stream(files.metrics)) {
    metrics_ = open_stream(files.metrics, "--metrics " + files.metrics.string());
  }
  require_name("--tensorboard", files.tensorboard);
  require_name("--out", files.out);
  if (files.out.empty()) return;
  require_writable_directory(files.out);
  if (!lock_) lock_ = std::make_unique<train::RunLock>(files.out);
  outputs.writes_run("--out", files.out, goes_on(files) || began_before);
}

void RunClaim::made(const fs::path& folder) { lock_ = std::make_unique<train::RunLock>(folder); }

}  // namespace ringlet::app
