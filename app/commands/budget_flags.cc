#include "app/commands/budget_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/error_exit.h"

namespace ringlet::app {

CLI::Validator time_check() {
  return CLI::Validator(
      [](const std::string& text) {
        return bench::parse_seconds(text)
                   ? std::string()
                   : fmt::format("'{}' is no time such as 60s or 500ms, above 0", text);
      },
      "");
}

void add_budget_flags(CLI::App& command, AllReduceFlags& flags) {
  add_flags(command, flags, "Measurement",
            {budget_option(&AllReduceFlags::budget_seconds),
             train::option("strict", &AllReduceFlags::strict,
                           {.help = "end with exit code 4 where a row does not count"})});
  command.get_option("--budget")->check(time_check());
}

std::string time_text(const AllReduceFlags& flags, const std::vector<AllReduceBlock>& blocks) {
  std::size_t rows = 0;
  double seconds = 0;
  for (const AllReduceBlock& block : blocks) {
    const int places = block.both_places ? 2 : 1;
    rows += places * block.options.sizes.size() * block.options.strategies.size();
    seconds += places * bench::expected_seconds(block.options, block.ranks);
  }
  const bool is_judged = flags.options.iterations == 0 ||  // tune's are chosen
                         flags.options.iterations >= bench::kFewestJudged;
  return fmt::format(
      "{} row{}: about {:.0f} s, {}", rows, rows == 1 ? "" : "s", std::max(seconds, 1.0),
      is_judged ? fmt::format("and up to {:g} s more to measure again what other work disturbs "
                              "(--budget)",
                              flags.budget_seconds)
                : fmt::format("of so few calls that nothing tells whether other work disturbs "
                              "them (--iterations {} does)",
                              bench::kFewestJudged));
}

std::string busy_line(const std::vector<bench::Measurement>& rows) {
  std::string lines;
  for (const std::string& text : {bench::not_counting(rows), bench::on_shared_cores(rows)}) {
    if (!text.empty()) lines += text + "\n";
  }
  return lines;
}

int exit_code(const AllReduceFlags& flags, const std::vector<bench::Measurement>& rows) {
  return flags.strict && !bench::not_counting(rows).empty() ? kNotGood : 0;
}

}  // namespace ringlet::app
