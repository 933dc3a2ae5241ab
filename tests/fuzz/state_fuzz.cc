// state.json: what is read can be written, and is then read as the same.
#include "base/files/atomic_file.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/state_json.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  train::StateJson state;
  std::vector<std::string> texts{train::format_state_json(state)};
  state.recipe.exact = true;
  state.recipe.schedule = train::ScheduleKind::one_cycle;
  state.recipe.data = "/a/folder \"quoted\"";
  state.progress = {.step = 123,
                    .epoch_loss = 45.5,
                    .epoch_samples = 678,
                    .unverified = true,
                    .best = {{"lfw", 0.25, 120}, {"a/\"pairs\"", 1, 0}}};
  state.data_hash = ~std::uint64_t{0};
  state.recipe.precision = train::Precision::f16;
  state.loss_scale = {.scale = 1024, .good_steps = 7, .skips_in_row = 1, .skips = 2};
  texts.push_back(train::format_state_json(state));
  return texts;
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<FileError>([&] {
    const train::StateJson state = train::parse_state_json("fuzz", fuzz::text_of(data, size));
    const train::StateJson again = train::parse_state_json("fuzz", train::format_state_json(state));
    fuzz::promise(again.recipe == state.recipe && again.data_hash == state.data_hash &&
                      again.loss_scale == state.loss_scale &&
                      again.progress.step == state.progress.step &&
                      again.progress.unverified == state.progress.unverified &&
                      again.progress.best == state.progress.best,
                  "a state comes back");
  });
  return 0;
}
