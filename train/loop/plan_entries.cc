#include "train/loop/plan_entries.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "train/recipe/version.h"

namespace ringlet::train {

std::vector<std::pair<std::string, std::string>> plan_entries(const RunSetup& setup,
                                                              const nn::Plan& plan,
                                                              const std::vector<Bucket>& buckets,
                                                              const std::string& strategy) {
  std::vector<std::pair<std::string, std::string>> entries;
  entries.emplace_back("version", kVersion);
  // By what is in it: each machine may have it in a folder of its own.
  entries.emplace_back("data", setup.data.train->contents());
  entries.emplace_back("test data", setup.data.test->contents());
  if (setup.options.task) entries.emplace_back("task", setup.options.task->name());
  if (!setup.weights.empty()) {
    const auto hash = hash_bytes(setup.weights.data(), setup.weights.size() * sizeof(float));
    entries.emplace_back("the samples' weights", fmt::format("hash {:016x}", hash));
  }
  for (const VerificationSet& set : setup.verification) {
    entries.emplace_back("--verify " + set.name, fmt::format("{} pairs, hash {:016x}",
                                                             set.pairs->size(), set.pairs->hash()));
  }
  entries.insert(entries.end(), setup.recipe_entries.begin(), setup.recipe_entries.end());
  entries.emplace_back("steps", fmt::format("{} to {} of {}", setup.first_step, setup.last_step,
                                            setup.planned_steps));
  entries.emplace_back(
      "shards", fmt::format("{} over {} ranks", setup.partition.shards, setup.partition.ranks));
  // All ranks save and compare together.
  const Files& files = setup.options.files;
  entries.emplace_back("--out", files.out.empty() ? "not given" : "given");
  entries.emplace_back("--save-every", fmt::format("{}", files.save_every));
  entries.emplace_back("--check-replicas",
                       fmt::format("{}", setup.options.execution.check_replicas));
  entries.emplace_back("layout", name_of(setup.replica.layout));
  entries.emplace_back("the number of buckets (--bucket-kb, --first-bucket-kb)",
                       fmt::format("{}", buckets.size()));
  entries.emplace_back("--sync", strategy);  // which `auto` takes by the buckets' sizes
  for (const nn::PlannedParameter& p : plan.parameters) {
    const bool cut = p.placement == nn::Placement::rows;  // each rank has other rows
    entries.emplace_back("parameter " + p.name,
                         cut ? fmt::format("{} cut by rows", p.shape.with_batch(p.rows).to_string())
                             : fmt::format("{} at {}", p.shape.to_string(), p.begin));
  }
  for (const Bucket& bucket : buckets) {
    // Behind the parameters, without the rows that other ranks have more or less of.
    const std::int64_t all = plan.with_gradient();
    const std::int64_t rows =
        plan.is_sharded() && bucket.begin >= all ? all - plan.replicated() : 0;
    entries.emplace_back(bucket.name,
                         fmt::format("[{}, {})", bucket.begin - rows, bucket.end - rows));
  }
  return entries;
}

}  // namespace ringlet::train
