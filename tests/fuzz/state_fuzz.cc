// state.json: what is read can be written, and is then read as the same.
#include "tests/fuzz/fuzz.h"
#include "train/files/atomic_file.h"
#include "train/files/state_json.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  train::StateJson state;
  std::vector<std::string> texts{train::format_state_json(state)};
  state.recipe.exact = true;
  state.recipe.schedule = train::ScheduleKind::one_cycle;
  state.recipe.data = "/a/folder \"quoted\"";
  state.progress = {.step = 123, .epoch_loss = 45.5, .epoch_samples = 678};
  state.data_hash = ~std::uint64_t{0};
  texts.push_back(train::format_state_json(state));
  return texts;
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<train::FileError>([&] {
    const train::StateJson state = train::parse_state_json("fuzz", fuzz::text_of(data, size));
    const train::StateJson again = train::parse_state_json("fuzz", train::format_state_json(state));
    fuzz::promise(again.recipe == state.recipe && again.data_hash == state.data_hash &&
                      again.progress.step == state.progress.step,
                  "a state comes back");
  });
  return 0;
}
