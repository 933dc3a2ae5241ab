// A whole file of torch.save(), as the readers of weights see it.
#include <sstream>

#include "base/files/file_error.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/torch_files.h"
#include "train/files/torch_archive.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  using namespace testing;
  const std::string six(24, 'x');
  const std::string value = pickled_dict(
      {{"rows", pickled_tensor({.stored = 6, .shape = {2, 3}, .strides = {3, 1}})},
       {"turned", pickled_tensor({.stored = 6, .shape = {3, 2}, .strides = {1, 3}})},
       {"half",
        pickled_tensor(
            {.key = "1", .type = "HalfStorage", .stored = 2, .shape = {2}, .strides = {1}})},
       {"none", pickled_tensor({.stored = 6, .shape = {0}, .strides = {1}})}});
  return {torch_file(value, {six, "abcd"}), zip_of(torch_entries(value, {six, "abcd"}), true),
          torch_file(pickled_dict({{"model", value}}), {six, "abcd"}),
          old_torch_file(
              pickled_dict(
                  {{"rows", pickled_tensor({.stored = 6, .shape = {2, 3}, .strides = {3, 1}})}}),
              {six})};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const std::string bytes(fuzz::text_of(data, size));
  fuzz::reads<FileError>([&] {
    train::TorchArchive archive(std::make_unique<std::istringstream>(bytes), size, "fuzz");
    std::uint64_t end = 0;
    for (const train::StoredTensor& tensor : archive.header().tensors) {
      fuzz::promise(tensor.begin == end && tensor.end >= end, "tensors follow each other");
      end = tensor.end;
    }
    fuzz::promise(end / train::kMostShared <= size, "nothing swells");
    constexpr std::uint64_t kPiece = 5;  // which cuts elements
    std::string piece(kPiece, '\0');
    for (std::uint64_t at = 0; at < end; at += kPiece) {
      archive.read(piece.data(), std::min(kPiece, end - at));
    }
    (void)archive.sum();
  });
  return 0;
}
