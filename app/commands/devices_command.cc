// ringlet devices
#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.h"
#include "train/telemetry/device_report.h"

namespace ringlet::app {

namespace {

int print_devices(bool as_json) {
  train::DeviceReport report = train::survey_devices();
  look_at_each(report.cuda);
  fmt::print("{}", as_json ? to_json(report).dump(2) + "\n" : to_text(report));
  return 0;
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("devices", "list the processor, the GPUs and the libraries to train with");
  command->add_flag("--json", *json, "for programs")->group("Output");
  command->callback([json, &action] { action = [=] { return print_devices(*json); }; });
}

}  // namespace ringlet::app
