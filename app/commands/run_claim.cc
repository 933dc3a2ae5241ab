#include "app/commands/run_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/usage.h"
#include "app/commands/checkpoint.h"
#include "app/commands/former_run.h"
#include "base/files/atomic_file.h"
#include "base/files/line_file.h"
#include "base/files/posix_file.h"
#include "train/files/centres.h"
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
    lock_ = std::make_shared<train::RunLock>(run);
    AtomicDirectory::recover(run / "state");
    AtomicDirectory::recover(run / train::kBestFolder);
  } else {
    train::RunLock::require_free(run);
  }
}

void RunClaim::outputs(const train::TrainOptions& options, int processes) {
  const train::Files& files = options.files;
  Outputs outputs(command_, files.force);
  outputs.reads("--init", train::model_file_of(files.init));
  outputs.reads("--init-centres", train::centres_file_of(files.init_centres));
  outputs.reads_data(options);
  const auto pairs = checked([&] { return train::verify_files(options.recipe); });
  for (const fs::path& file : pairs) outputs.reads("--verify", file);
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
  if (!lock_) lock_ = std::make_shared<train::RunLock>(files.out);
  outputs.writes_run("--out", files.out, goes_on(files) || began_before);
}

void RunClaim::made(const fs::path& folder) { lock_ = std::make_shared<train::RunLock>(folder); }

namespace {

/// N where `name` is PREFIX followed by the number N; else 0.
std::int64_t number_behind(const std::string& prefix, const std::string& name) {
  if (!name.starts_with(prefix)) return 0;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && stopped == end ? std::max<std::int64_t>(number, 0) : 0;
}

/// The error that the system has told, of `path`.
void require_made(const fs::path& path, const std::error_code& error) {
  if (error) throw posix::file_error("create", path, error.value());
}

}  // namespace

fs::path make_run_folder(const fs::path& root, const std::string& model) {
  std::error_code error;
  fs::create_directories(root, error);
  require_made(root, error);
  const std::string prefix = model + "-";
  std::int64_t last = 0;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    last = std::max(last, number_behind(prefix, entry->path().filename().string()));
  }
  require_made(root, error);
  while (true) {
    fs::path folder = root / fmt::format("{}{}", prefix, ++last);
    const bool made = fs::create_directory(folder, error);
    require_made(folder, error);
    if (made) return folder;  // else another run has just made it
  }
}

}  // namespace ringlet::app
