// ringlet compare
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/error_exit.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/standard_output.h"
#include "app/compare/comparison_page.h"
#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

struct CompareFlags {
  fs::path a, b;
  double fail_over = 0;  ///< 0: no row fails
  bool strict = false;
  fs::path json, out;
  bool force = false;
  std::optional<double> limit() const {
    return fail_over > 0 ? std::optional(fail_over) : std::nullopt;
  }
};

void check_outputs(const CompareFlags& flags, const CLI::App& command) {
  Outputs outputs(command, flags.force);
  for (const auto& [name, path] : {std::pair("A", flags.a), std::pair("B", flags.b)}) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      outputs.reads_run(name, path);
    } else {
      outputs.reads(name, path);
    }
  }
  outputs.writes("--json", flags.json);
  outputs.writes("--out", flags.out);
}

void require_alike(const compare::Comparison& comparison) {
  if (comparison.unlike.empty()) return;
  std::vector<std::string> what;
  for (const compare::Unlike& one : comparison.unlike) what.push_back(one.of);
  throw ComparisonError(
      fmt::format("{} and {} have unlike {}; measure both alike, or leave --strict out",
                  comparison.a.file, comparison.b.file, fmt::join(what, ", ")));
}

/// A script should not take for good what says nothing, or gives wrong results.
void require_told(const compare::Comparison& comparison) {
  const std::vector<compare::Row> wrong = compare::wrong_rows(comparison);
  if (!wrong.empty()) {
    throw ComparisonError(fmt::format(
        "{}: {} of {} rows {} wrong results, the first {}; the table has all that both sides have",
        comparison.b.file, wrong.size(), comparison.b.rows.size(),
        wrong.size() == 1 ? "has" : "have", name_of(wrong.front())));
  }
  const std::size_t pairs = comparison.pairs.size();
  if (compare::tally_of(comparison).not_counted < pairs) return;
  throw ComparisonError(
      fmt::format("{} and {}: nothing can be said, as none of {} rows counts; measure both again "
                  "when the machine has less to do",
                  comparison.a.file, comparison.b.file, pairs));
}

void require_none_beyond(const compare::Comparison& comparison, double limit) {
  const std::vector<std::size_t> worse = compare::beyond(comparison, limit);
  if (worse.empty()) return;
  const auto& most =
      comparison
          .pairs[*std::max_element(worse.begin(), worse.end(), [&](std::size_t x, std::size_t y) {
            return comparison.pairs[x].ratio.value < comparison.pairs[y].ratio.value;
          })];
  throw ComparisonError(fmt::format(
      "{}: {} of {} rows {} worse by more than --fail-over {:g}, most of all {} by {}; the table "
      "has all of them",
      comparison.b.file, worse.size(), comparison.pairs.size(), worse.size() == 1 ? "is" : "are",
      limit, name_of(most.a), text_of_ratio(most.ratio)));
}

int run_compare(const CompareFlags& flags, const CLI::App& command) {
  check_outputs(flags, command);
  compare::Side a = compare::read_side(flags.a);
  const compare::Comparison comparison =
      compare::compared(std::move(a), compare::read_side(flags.b));
  if (flags.strict && !comparison.unlike.empty()) {
    print_if_possible([&] {
      for (const compare::Unlike& one : comparison.unlike) fmt::print("{}\n", one.text);
    });
    require_alike(comparison);
  }
  print_if_possible([&] { fmt::print("{}", to_text(comparison)); });
  if (!flags.json.empty()) {
    write_file_atomically(flags.json, row_a_line(to_json(comparison, flags.limit())));
  }
  if (!flags.out.empty()) {
    write_file_atomically(flags.out, comparison_page(comparison));
    print_if_possible(
        [&] { fmt::print("\nwrote {}; open it in a browser\n", on_one_line(flags.out.string())); });
  }
  if (flags.limit() || flags.strict) require_told(comparison);
  if (flags.limit()) require_none_beyond(comparison, *flags.limit());
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = app.add_subcommand(
      "compare", "two measurements or runs, row by row: what is slower, and is it really");
  for (const auto& [name, path] : {std::pair("A", &flags->a), std::pair("B", &flags->b)}) {
    command
        ->add_option(name, *path,
                     std::string("a file of bench all-reduce --json or bench train --json, or the "
                                 "--out of a run; ") +
                         (name == std::string("A") ? "the one before" : "the one after"))
        ->required()
        ->type_name("FILE|DIR");
  }
  add_flags(
      *command, *flags, "Verdict",
      {train::option("fail_over", &CompareFlags::fail_over,
                     {.help = "end with code 4 where a row of B takes more than so many times "
                              "A's time, its whole interval included: 1.05; and where no row "
                              "counts, or B has wrong results",
                      .range = train::from(1),
                      .default_in_words = "no row fails"}),
       train::option("strict", &CompareFlags::strict,
                     {.help = "end with code 4 where the machines, builds, ranks, types or "
                              "versions are unlike, no row counts, or B has wrong results"})});
  add_flags(*command, *flags, "Files",
            {train::option("out", &CompareFlags::out,
                           {.help = "a page of it, for a browser", .value_name = "FILE"}),
             train::option("json", &CompareFlags::json,
                           {.help = "write the figures", .value_name = "FILE"})});
  add_force_flag(*command, flags->force)->group("Files");
  command->callback(
      [flags, command, &action] { action = [=] { return run_compare(*flags, *command); }; });
}

}  // namespace ringlet::app
