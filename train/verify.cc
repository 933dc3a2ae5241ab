#include "train/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "train/loop/predictor.h"
#include "train/recipe/verify_spec.h"
#include "train/setup/pass_size.h"
#include "train/trainer.h"

namespace ringlet::train {

namespace {

/// Embeds this rank's pairs. False where `stop` ended that; throws FileError for what is not
/// finite.
bool embed(PairsShare& share, Predictor& predictor, const std::filesystem::path& file,
           const StopRequest& stop, std::int64_t each,
           const std::function<void(std::int64_t)>& done) {
  if (share.images() == nullptr) return true;
  try {
    predictor.each_pass(share.images(), [&](std::span<const float> outputs) {
      if (stop && stop()) throw Stopped();
      const std::int64_t left = (share.size() - share.taken()) * each;
      const std::int64_t samples = std::min(predictor.batch(), left);
      share.take(outputs, std::ssize(outputs) / samples, file.string());
      done(share.taken());
    });
  } catch (const Stopped&) {
    return false;
  }
  return true;
}

comm::Plan plan_of_sets(const std::vector<std::shared_ptr<const data::Pairs>>& sets) {
  comm::Plan plan;
  for (const auto& set : sets) {
    plan.emplace_back(set->file(), fmt::format("{} pairs, hash {:016x}", set->size(), set->hash()));
  }
  return plan;
}

}  // namespace

std::vector<Verified> verify(comm::Group& group, const Execution& execution,
                             const std::filesystem::path& file, const ModelInfo& info,
                             const std::vector<std::shared_ptr<const data::Pairs>>& sets,
                             const VerifyOptions& options) {
  const comm::Plan plan = plan_of_sets(sets);
  std::vector<std::filesystem::path> files;
  for (const auto& set : sets) files.emplace_back(set->file());
  const std::vector<std::string> names = names_of_sets(files);
  std::vector<Verified> results;
  bool stopped = false;
  const auto body = [&](Device& device, comm::Communicator& communicator) {
    communicator.require_equal(device.communication(), plan);
    const int rank = communicator.rank(), ranks = communicator.size();
    const std::int64_t usual = device.id().kind == DeviceKind::cuda ? 2000 : 250;
    const std::int64_t each = data::samples_of_pair(options.flip == Flip::sum);
    const std::int64_t pixels = std::int64_t{info.channels} * info.height * info.width;
    const PassOfPairs pass = pass_of_pairs(pixels, usual, each);
    Predictor predictor(device, file, info,
                        {.batch = pass.batch,
                         .layout = execution.layout,
                         .precision = options.precision,
                         .emulate_precision = execution.emulate_precision});
    require(predictor.batch() == pass.samples, "verify", "a pass is of whole pairs");
    const bool tells = communicator.world().local_rank == 0;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const auto& set = sets[i];
      PairsShare mine(set, {info.channels, info.height, info.width, info.exif}, options.flip,
                      pass.pairs, rank, ranks);
      const bool whole =
          embed(mine, predictor, file, options.stop_requested, each, [&](std::int64_t done) {
            communicator.note_work();
            if (rank == 0 && options.progress) options.progress(done, mine.size());
          });
      mine.slots().push_back(whole ? 0.0F : 1.0F);  // behind the pairs: who was stopped
      sum_over_ranks(device, communicator, mine.slots());
      const bool cut = mine.slots().back() > 0;
      if (tells) stopped = stopped || cut;
      if (cut) return;
      if (tells) results.push_back(mine.verified(names[i]));
    }
  };
  run_replicas(group, execution, body);
  if (stopped) throw Stopped();
  return results;
}

}  // namespace ringlet::train
