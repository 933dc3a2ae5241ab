// Configuration files in TOML.
#include "app/cli/config.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  return {
      "batch-size = 256\nexact = true   # a switch\ndevices = [\"cpu:0\", \"cpu:0\"]\nlr = 0.1\n",
      "model = 'lenet'\ntext = \"\"\"\nof\nlines\"\"\"\nhex = 0x10\nx = 1e3\ninf = inf\n",
      "[table]\na = 1\n", "a = [[1], [2]]\nb = 1979-05-27T07:32:00Z\nc = {d = 1}\n",
      "\"quoted key\" = \"\\u00e9\\n\"\na.b.c = 1\n"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<app::ConfigError>([&] {
    for (const auto& entry : app::parse_config(fuzz::text_of(data, size), "fuzz")) {
      fuzz::promise(entry.line >= 1, "lines count from 1");
      fuzz::promise(entry.kind == app::ConfigEntry::Kind::list || entry.values.size() == 1,
                    "one value, unless it is a list");
    }
  });
  return 0;
}
