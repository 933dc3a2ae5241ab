// ringlet verify
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/count_line.h"
#include "app/cli/error_exit.h"
#include "app/cli/flags.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/commands/checkpoint.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"
#include "data/pairs.h"
#include "train/sync/transport_choice.h"
#include "train/verify.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

struct VerifyFlags {
  RawFlags raw;
  fs::path checkpoint;
  std::vector<fs::path> pairs;
  train::Flip flip = train::Flip::sum;
  bool json = false;
  fs::path out;
  bool force = false;
};

std::string five_digits(const std::optional<double>& share) {
  return share ? fmt::format("{:.5f}", *share) : "-";
}

void print_words(const train::Verified& set) {
  const train::VerificationFigures& figures = set.figures;
  fmt::print("{}  {} pairs, {} of the same identity\n", on_one_line(set.name), figures.pairs,
             figures.same);
  fmt::print("  {:<18}{:.5f}\n", "XNorm", set.mean_length);
  fmt::print("  {:<18}{}\n", "Accuracy-Flip", in_words(figures.grid));
  fmt::print("  {:<18}{}  (thresholds between the distances, not on the grid)\n", "exact",
             in_words(figures.exact));
  fmt::print("  {:<16}", "TAR@FAR");
  for (std::size_t i = 0; i < train::kFalseAccepts.size(); ++i) {
    fmt::print("  1e-{} {}", i + 1, five_digits(figures.true_accepts[i]));
  }
  fmt::print("\n");
}

nlohmann::json to_json(const train::Verified& set) {
  const auto accuracy = [](const train::FoldedAccuracy& of) {
    return nlohmann::json{{"mean", of.mean}, {"std", of.deviation}};
  };
  nlohmann::json rates = nlohmann::json::object();
  for (std::size_t i = 0; i < train::kFalseAccepts.size(); ++i) {
    const std::optional<double>& rate = set.figures.true_accepts[i];
    rates[fmt::format("1e-{}", i + 1)] = rate ? nlohmann::json(*rate) : nlohmann::json();
  }
  return {{"name", set.name},
          {"pairs", set.figures.pairs},
          {"same", set.figures.same},
          {"xnorm", set.mean_length},
          {"accuracy_flip", accuracy(set.figures.grid)},
          {"accuracy_exact", accuracy(set.figures.exact)},
          {"tar_at_far", rates},
          {"zero_embeddings", set.zero_embeddings}};
}

void tell(const VerifyFlags& flags, const Checkpoint& checkpoint, const train::ModelInfo& info,
          const std::vector<train::Verified>& sets) {
  for (const train::Verified& set : sets) {
    if (set.zero_embeddings == 0) continue;
    print_warning(fmt::format("{}: {} of {} embeddings have no length; two such count as alike",
                              set.name, set.zero_embeddings, 2 * set.figures.pairs));
  }
  if (!flags.out.empty()) write_file_atomically(flags.out / "roc.csv", train::roc_table(sets));
  if (flags.json) {
    nlohmann::json document{{"model", checkpoint.file.string()},
                            {"flip", flags.flip == train::Flip::sum ? "sum" : "none"},
                            {"sets", nlohmann::json::array()}};
    for (const train::Verified& set : sets) document["sets"].push_back(to_json(set));
    constexpr int kIndent = 2;
    fmt::print("{}\n",
               document.dump(kIndent, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{}\n", model_in_words(checkpoint.file, info, !checkpoint.info));
  for (const train::Verified& set : sets) {
    fmt::print("\n");
    print_words(set);
  }
  if (!flags.out.empty()) fmt::print("\nsaved {}\n", on_one_line((flags.out / "roc.csv").string()));
}

int run_verify(const VerifyFlags& flags, const CLI::App& command, comm::Group& group) {
  std::set<fs::path> seen;
  for (const fs::path& file : flags.pairs) {
    if (seen.insert(file.lexically_normal()).second) continue;
    throw UsageError(fmt::format("PAIRS names {} twice; leave one out", file.string()));
  }
  const bool tells = group.process() == 0;
  const Checkpoint checkpoint =
      open_checkpoint(flags.checkpoint, group, flags.raw.options.execution.comm_timeout);
  const train::TrainOptions options = resolve(with_model_of(flags.raw, checkpoint));
  const train::ModelInfo info =
      checkpoint.info ? *checkpoint.info : assume_info(checkpoint, options.recipe, nullptr);
  if (tells) {
    Outputs outputs(command, flags.force);
    outputs.reads("--checkpoint", checkpoint.file);
    for (const fs::path& file : flags.pairs) outputs.reads("PAIRS", file);
    if (!flags.out.empty()) {
      require_name("--out", flags.out);
      require_writable_directory(flags.out);
      outputs.writes("--out", flags.out / "roc.csv");
    }
  }
  std::vector<std::shared_ptr<const data::Pairs>> sets;
  for (const fs::path& file : flags.pairs) sets.push_back(data::open_pairs(file));
  std::optional<CountLine> line;
  std::int64_t last = 0;
  const auto count = [&](std::int64_t done, std::int64_t total) {
    if (done <= last || !line) line.emplace(total, "pairs");  // of the next file
    line->show(last = done);
  };
  train::VerifyOptions how{
      .flip = flags.flip, .precision = options.recipe.precision, .stop_requested = stop_noted};
  if (tells) how.progress = count;
  const std::vector<train::Verified> results =
      train::verify(group, train::decided(options.execution), checkpoint.file, info, sets, how);
  line.reset();
  if (tells) tell(flags, checkpoint, info, results);
  return 0;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  auto all = std::make_shared<VerifyFlags>();
  const std::shared_ptr<RawFlags> flags(all, &all->raw);
  CLI::App* command = app.add_subcommand(
      "verify", "measure how well a model tells whether two pictures are of the same identity");
  command->footer(
      "What a model gives for a picture is its embedding: of one that was trained to classify, its "
      "logits. Pairs are the same where the squared distance of their unit vectors is below a "
      "threshold, which nine tenths of the pairs set for the tenth.\n");
  add_checkpoint_flag(*command, all->checkpoint);
  command
      ->add_option("PAIRS", all->pairs,
                   "files of pairs: .bin, PATH TAB PATH TAB 0|1, or LFW's pairs.txt")
      ->required()
      ->type_name("PAIRS...");
  add_model_flag(*command, *flags);
  add_no_normalize_flag(*command, *flags);
  add_flags(*command, *all, kModelGroup,
            {train::choice_option("flip", &VerifyFlags::flip,
                                  {{"sum", train::Flip::sum}, {"none", train::Flip::none}},
                                  {.help = "sum: add what the model gives for the mirrored "
                                           "picture"}),
             train::option("json", &VerifyFlags::json, {.help = "one JSON document, for programs"}),
             train::option("out", &VerifyFlags::out,
                           {.help = "write roc.csv into this folder", .value_name = "DIR"})});
  add_force_flag(*command, all->force)->group("Files");
  add_precision_flags(*command, *flags, "Replicas");
  add_process_flag(*command, *flags);
  add_replica_flags(*command, *flags);
  add_gpu_flags(*command, *flags);
  command->callback([all, flags, command, &action] {
    action = {
        in_processes(flags, [=](comm::Group& group) { return run_verify(*all, *command, group); }),
        [=] {
          const Checkpoint checkpoint = open_checkpoint(all->checkpoint);
          return values_of(resolve(with_model_of(all->raw, checkpoint)));
        }};
  });
}

}  // namespace ringlet::app
