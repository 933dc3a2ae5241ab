// The pickle of torch.save() alone, beside storages of a few sizes: what mutations reach best.
#include "base/files/file_error.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/torch_files.h"
#include "train/files/torch_pickle.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  using namespace testing;
  const std::string rows = pickled_tensor({.stored = 6, .shape = {2, 3}, .strides = {3, 1}});
  const std::string half = pickled_tensor(
      {.key = "1", .type = "HalfStorage", .stored = 4, .first = 1, .shape = {3}, .strides = {1}});
  const std::string parameter =
      "ctorch._utils\n_rebuild_parameter\n" + pickled_tuple({rows, "\x88", "}"}) + "R";
  return {pickle_of(pickled_dict({{"w", rows}, {"b", half}})),
          pickle_of(
              pickled_dict({{"epoch", "K\x05"}, {"state_dict", pickled_dict({{"p", parameter}})}})),
          pickle_of("ccollections\nOrderedDict\n)R" + pickled_dict({}) + "b"),
          pickle_of("cargparse\nNamespace\n)\x81}b"), "\x80\x04\x8c\x02os\x8c\x06system\x93)R."};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const std::map<std::string, std::uint64_t> storages{{"0", 24}, {"1", 8}, {"2", 0}};
  fuzz::reads<FileError>([&] {
    for (const train::TorchTensor& tensor :
         train::read_torch_pickle({data, size}, storages, "fuzz").tensors) {
      const std::int64_t width = train::safetensors_dtype_bytes(tensor.spec.dtype);
      const auto stored = static_cast<std::int64_t>(storages.at(tensor.storage));
      std::int64_t last = tensor.first;
      bool has_elements = true;
      for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
        if (tensor.spec.shape[i] > 1) last += (tensor.spec.shape[i] - 1) * tensor.strides[i];
        has_elements = has_elements && tensor.spec.shape[i] > 0;
      }
      fuzz::promise(!has_elements || (last + 1) * width <= stored, "a tensor lies in its storage");
    }
  });
  return 0;
}
