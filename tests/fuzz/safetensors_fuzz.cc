// safetensors: as a whole file, and as a header alone, which is what mutations reach best.
#include <sstream>

#include "app/inspect/parts.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/foreign_format.h"
#include "train/files/load_model.h"
#include "train/files/safetensors.h"
#include "train/files/safetensors_header.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::fuzz {

namespace {

constexpr std::uint64_t kDataBytes = 16;  // that the header alone is said to describe

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes(sizeof(std::uint64_t), '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes[1] = static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string one = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  const std::string many = R"({"__metadata__":{"format":"pt","ringlet.input":"[1,28,28]"},)"
                           R"("a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},)"
                           R"("b":{"dtype":"I64","shape":[1,1],"data_offsets":[2,10]},)"
                           R"("c":{"dtype":"U8","shape":[0],"data_offsets":[10,10]},)"
                           R"("d":{"dtype":"F16","shape":[3],"data_offsets":[10,16]}}    )";
  return {one,
          many,
          file_of(one, std::string(16, 'x')),
          file_of(many, std::string(16, 'y')),
          file_of("{}", ""),
          "{}",
          R"({"a":{"dtype":"F8_E4M3","shape":[9223372036854775807,2],"data_offsets":[0,1]}})"};
}

namespace {

void read_file(std::string_view bytes) {
  (void)train::recognise_foreign(bytes);
  const auto stream = [&] {
    return train::SafetensorsStream(std::make_unique<std::istringstream>(std::string(bytes)),
                                    bytes.size(), "fuzz");
  };
  train::SafetensorsFile file(stream(), "fuzz");
  for (const auto& entry : file.entries()) {
    promise(file.contains(entry.spec.name), "each entry can be found");
    if (entry.spec.dtype == "F32") (void)file.f32(entry.spec.name);
    (void)reads<FileError>([&] { train::floats_of(file, entry.spec.name); });
    if (entry.spec.dtype != "I64") (void)reads<FileError>([&] { file.i64(entry.spec.name); });
  }
  train::SafetensorsStream again = stream();
  promise(app::inspect::summarise_tensors(again).size() == file.entries().size(),
          "a summary of each tensor");
  (void)file.besides({});
  (void)reads<FileError>([&] { file.match(std::vector<train::TensorSpec>{{"a", "F32", {}}}); });
}

/// What is read can be written, and is then read as the same.
void read_header(std::string_view text) {
  const auto header = train::parse_safetensors_header("fuzz", text, kDataBytes);
  const auto again = train::parse_safetensors_header(
      "fuzz", train::format_safetensors_header("fuzz", header), kDataBytes);
  promise(again.metadata == header.metadata, "metadata come back");
  promise(again.tensors.size() == header.tensors.size(), "tensors come back");
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const auto &a = header.tensors[i], &b = again.tensors[i];
    promise(a.spec.name == b.spec.name && a.spec.shape == b.spec.shape && a.begin == b.begin,
            "each tensor comes back");
  }
}

}  // namespace
}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::reads<FileError>([&] { fuzz::read_file(bytes); });
  fuzz::reads<FileError>([&] { fuzz::read_header(bytes); });
  return 0;
}
