// Files of torch.save() that are none, or that want too much.
#include <filesystem>

#include "tests/cli/messages/provocations.h"
#include "tests/support/torch_files.h"

namespace ringlet::testing {
namespace {

Provocation begins_with(const std::string& bytes) {
  return {1, [=](const Stage& stage) { return stage.init_from(bytes); }};
}

/// One storage of four bytes, and this value.
Provocation value(const std::string& pickled) { return begins_with(torch_file(pickled, {"abcd"})); }

Provocation tensor(const PickledView& view) {
  return value(pickled_dict({{"w", pickled_tensor(view)}}));
}

std::string changed(std::string zip, std::size_t field, const std::string& bytes) {
  return zip.replace(zip.find("PK\x01\x02") + field, bytes.size(), bytes);
}

/// Begins with the weights of that name, where `file` of a cache has these bytes.
Provocation named(const std::string& model, const std::string& file = "",
                  const std::string& bytes = "") {
  return {
      1, [=](const Stage& stage) {
        if (!file.empty()) {
          std::filesystem::create_directories(std::filesystem::path(stage / file).parent_path());
          stage.file(file, bytes);
        }
        return quick({"--init", model},
                     {{"XDG_CACHE_HOME", stage / "."}, {"TORCH_HOME", stage / "torch"}});
      }};
}

}  // namespace

std::vector<Provocation> provocations_by_torch() {
  const std::string whole = pickled_tensor({.stored = 1, .shape = {1}, .strides = {1}});
  const std::string dict = pickled_dict({{"w", whole}});
  const std::string file = torch_file(dict, {"abcd"}), old = old_torch_file(dict, {"abcd"});
  std::vector<std::pair<std::string, std::string>> shared;
  for (int i = 0; i < 300; ++i) {
    shared.emplace_back("t" + std::to_string(i),
                        pickled_tensor({.stored = 25'000, .shape = {25'000}, .strides = {1}}));
  }
  const std::string inner = zip_of({{"w/data.pkl", "}."}}).substr(0, 60);
  const std::string overlapping = zip_of({{"a/data.pkl", inner}, {"w/data.pkl", "}."}});
  constexpr std::size_t kFlags = 8, kMethod = 10, kPlace = 42;
  std::string second = overlapping;
  second.replace(second.rfind("PK\x01\x02") + kPlace, 4, little_endian(40, 4));
  return {value("cos\nsystem\n(X" + little_endian(4, 4) + "truetR"),
          value(whole),
          value(pickled_dict({{"epoch", "K\x01"}})),
          value(pickled_dict({{"a\nb", whole}})),
          value(pickled_dict({{"w", whole}, {"w", whole}})),
          tensor({.key = "7", .stored = 1, .shape = {1}, .strides = {1}}),
          tensor({.stored = 2, .shape = {1}, .strides = {1}}),
          tensor({.stored = 1, .shape = {2}, .strides = {1}}),
          begins_with(torch_file(pickled_dict(shared), {std::string(100'000, 'x')})),
          begins_with(zip_of({{"w/data.pkl", "}."}, {"w/byteorder", "big"}})),
          begins_with(zip_of({{"w/data.pkl", "}."}, {"w/byteorder", std::string(200, 'x')}})),
          begins_with(zip_of({{"w/data.pkl", "}."}, {"v/data.pkl", "}."}})),
          begins_with(zip_of({{"w/v/data.pkl", "}."}})),
          begins_with(second),
          begins_with(changed(file, kPlace, "\x01")),
          begins_with(file.substr(0, file.size() - 1)),
          begins_with(changed(file, kFlags, "\x01")),
          begins_with(changed(file, kMethod, "\x08")),
          begins_with(zip_of({{"w/data.pkl", "}."}, {"w/data.pkl", "}."}})),
          begins_with(old.substr(0, old.size() - 1)),
          begins_with(old + "x"),
          begins_with(old_torch_file(dict, {"abcd"}, {.more_elements = 1})),
          begins_with(old_torch_file(dict, {"abcd"}, {.keys = {"7"}})),
          begins_with(old_torch_file(
              pickled_dict(
                  {{"w", pickled_tensor(
                             {.stored = 1, .shape = {1}, .strides = {1}, .part_of = "K\x01"})}}),
              {"abcd"})),
          named("resnet18"),
          named("lenet"),
          named("resnet18", "torch/hub/checkpoints/resnet18-f37072fd.pth", "another"),
          usage_of_train({"--freeze", "convolution"}),
          usage_of_train({"--freeze", "fc1,fc2,fc3"}),
          usage_of_train({"--freeze", "fc3", "--head-lr", "0.1"}),
          usage_of_train({"--lr", "0", "--head-lr", "0.1"}),
          usage_of_train({"--freeze", "fc1", "--stages", "2"}),
          usage_of_train({"--head-lr", "0.1", "--stages", "2"})};
}

}  // namespace ringlet::testing
