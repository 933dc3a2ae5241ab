#include "train/files/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/files.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::read_file;
using testing::says;
using testing::write_file;

std::string little_endian(std::uint64_t value) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> 8 * i & 0xFF);
  return bytes;
}

/// A file with this header, unpadded, and these bytes of tensors.
std::string file_of(const std::string& header, const std::string& data) {
  return little_endian(header.size()) + header + data;
}

std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

/// What the Python package writes for {"b": ones(2, 2), "a": arange(3), "n": int64 7}.
const std::string kPythonHeader =
    R"({"__metadata__":{"format":"pt"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
    R"("a":{"dtype":"F32","shape":[3],"data_offsets":[8,20]},)"
    R"("b":{"dtype":"F32","shape":[2,2],"data_offsets":[20,36]}} )";
const std::string kPythonFile =
    file_of(kPythonHeader + std::string((8 - kPythonHeader.size() % 8) % 8, ' '),
            little_endian(7) + floats({0, 1, 2}) + floats({1, 1, 1, 1}));

class Safetensors : public ::testing::Test {
 protected:
  SafetensorsFile read(const std::string& bytes) {
    write_file(path_, bytes);
    return SafetensorsFile(path_);
  }
  /// The message for a file, which has to name it.
  std::string error(const std::string& bytes) {
    std::string message = message_of<FileError>([&] { read(bytes); });
    EXPECT_TRUE(says(message, {path_.string() + ": "}));
    return message;
  }
  /// The message for one tensor "a" with these fields and 16 bytes of data.
  std::string error_of_tensor(const std::string& fields) {
    return error(file_of(R"({"a":{)" + fields + "}}", std::string(16, 'x')));
  }

  testing::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_ / "model.safetensors";
};

TEST_F(Safetensors, ReadsWhatPythonWrites) {
  const SafetensorsFile file = read(kPythonFile);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.entries().size(), 3U);
  EXPECT_EQ(file.entries()[1].spec.name, "a");
  EXPECT_EQ(file.i64("n")[0], 7);
  EXPECT_EQ(file.i64("n").size(), 1U);
  EXPECT_EQ(file.f32("a")[2], 2.0F);
  EXPECT_EQ(file.f32("b").size(), 4U);
  EXPECT_TRUE(file.contains("b"));
  EXPECT_FALSE(file.contains("c"));
}

TEST_F(Safetensors, WritesWhatPythonWrites) {
  const std::int64_t n = 7;
  const float a[] = {0, 1, 2}, b[] = {1, 1, 1, 1};
  const TensorToWrite tensors[] = {
      {{"b", "F32", {2, 2}}, b}, {{"n", "I64", {}}, &n}, {{"a", "F32", {3}}, a}};
  write_safetensors(path_, tensors, {{"format", "pt"}});
  EXPECT_EQ(read_file(path_), kPythonFile);
}

TEST_F(Safetensors, TheBytesDoNotDependOnTheOrder) {
  const float values[] = {1, 2, 3, 4};
  std::vector<TensorToWrite> tensors{{{"conv1.weight", "F32", {2, 2}}, values},
                                     {{"a", "F16", {3}}, values},
                                     {{"z", "F64", {1}}, values},
                                     {{"empty", "F32", {0, 5}}, values}};
  write_safetensors(path_, tensors);
  const std::string first = read_file(path_);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(path_, tensors);
  EXPECT_EQ(read_file(path_), first);
  const SafetensorsFile file(path_);
  std::vector<std::string> names;
  for (const auto& entry : file.entries()) names.push_back(entry.spec.name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "conv1.weight", "empty", "a"}));
  EXPECT_EQ(file.f32("conv1.weight")[3], 4.0F);
  EXPECT_TRUE(file.f32("empty").empty());
}

TEST_F(Safetensors, PadsTheHeaderToEightBytes) {
  const float value = 1;
  for (const std::string name :
       {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    const TensorToWrite tensors[] = {{{name, "F32", {1}}, &value}};
    write_safetensors(path_, tensors);
    EXPECT_EQ(read_file(path_).size() % 8, 4U);
    EXPECT_EQ(SafetensorsFile(path_).f32(name)[0], 1.0F);
  }
}

TEST_F(Safetensors, AcceptsTensorsAtOddOffsets) {
  const SafetensorsFile file =
      read(file_of(R"({"u":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                   R"("f":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}})",
                   "abc" + floats({2.5F})));
  EXPECT_EQ(file.f32("f")[0], 2.5F);
}

TEST_F(Safetensors, AcceptsAFileWithoutTensors) {
  EXPECT_TRUE(read(file_of("{}", "")).entries().empty());
  write_safetensors(path_, {});
  EXPECT_TRUE(SafetensorsFile(path_).entries().empty());
}

TEST_F(Safetensors, KeepsNamesAndMetadataThatNeedEscapes) {
  const float value = 3;
  const std::string name = "we\"ird\\n\u00e4me\n";
  const TensorToWrite tensors[] = {{{name, "F32", {}}, &value}};
  write_safetensors(path_, tensors, {{"key \"1\"", "line\nbreak"}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.f32(name)[0], 3.0F);
  EXPECT_EQ(file.metadata().at("key \"1\""), "line\nbreak");
}

TEST_F(Safetensors, RefusesACutAtEveryByte) {
  for (std::size_t size = 0; size < kPythonFile.size(); ++size) {
    EXPECT_TRUE(says(error(kPythonFile.substr(0, size)), {"truncated"})) << size;
  }
}

TEST_F(Safetensors, RefusesBytesAfterTheEnd) {
  EXPECT_TRUE(says(error(kPythonFile + "x"), {"too long", "36 bytes", "holds 37"}));
}

TEST_F(Safetensors, SurvivesEveryChangedByteOfTheHeader) {
  for (std::size_t i = 0; i < 8 + kPythonHeader.size(); ++i) {
    for (const int flip : {0x01, 0x10, 0x80}) {
      std::string broken = kPythonFile;
      broken[i] = static_cast<char>(broken[i] ^ flip);
      try {
        read(broken);  // some changes only make another name
      } catch (const FileError& error) {
        EXPECT_TRUE(says(error.what(), {path_.string()}));
      }
    }
  }
}

TEST_F(Safetensors, RefusesAHeaderBeyondTheLimit) {
  EXPECT_TRUE(says(error(little_endian(std::uint64_t{1} << 63) + "{}"),
                   {"9223372036854775808 bytes long", "at most 100000000"}));
  EXPECT_TRUE(says(error(little_endian(~std::uint64_t{0}) + "{}"), {"at most 100000000"}));
  EXPECT_TRUE(says(error(little_endian(100'000'001) + "{}"), {"at most 100000000"}));
  EXPECT_TRUE(says(error(little_endian(100'000'000) + "{}"), {"truncated", "2 follow"}));
}

TEST_F(Safetensors, RefusesAHeaderThatIsNotAnObject) {
  EXPECT_TRUE(says(error(file_of("", "")), {"does not start with '{'"}));
  EXPECT_TRUE(says(error(file_of(" {}", "")), {"does not start with '{'"}));
  EXPECT_TRUE(says(error(file_of("[]", "")), {"does not start with '{'"}));
  EXPECT_TRUE(says(error(file_of("{", "")), {"not valid JSON"}));
  EXPECT_TRUE(says(error(file_of("{} {}", "")), {"not valid JSON"}));
  EXPECT_TRUE(says(error(file_of(std::string("{}\0", 3), "")), {"not valid JSON"}));
  EXPECT_TRUE(says(error(file_of("{\"\xff\":1}", "")), {"not valid JSON"}));
}

TEST_F(Safetensors, RefusesDeepNesting) {
  EXPECT_TRUE(says(error(file_of(R"({"a":)" + std::string(100'000, '['), "")), {"too deeply"}));
}

TEST_F(Safetensors, TellsOfNamesWithControlCharactersInOneLine) {
  EXPECT_TRUE(says(error(file_of("{\"a\\n\\u001b[2J\":3}", "")), {"'a\\n\\x1b[2J'"}));
}

TEST_F(Safetensors, RefusesDuplicateNames) {
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_TRUE(says(error(file_of(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", floats({1}))),
                   {"the name 'a' twice"}));
  EXPECT_TRUE(
      says(error_of_tensor(R"("dtype":"F32","dtype":"I32","shape":[4],"data_offsets":[0,16])"),
           {"the name 'dtype' twice"}));
  EXPECT_TRUE(says(error(file_of(R"({"__metadata__":{"k":"1","k":"2"}})", "")), {"'k' twice"}));
}

TEST_F(Safetensors, AcceptsOneNameInDifferentObjects) {
  EXPECT_NO_THROW(read(file_of(R"({"__metadata__":{"dtype":"x"},"shape":)"
                               R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                               floats({1}))));
}

TEST_F(Safetensors, RefusesHolesAndOverlaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[)" + first +
           R"(]},"b":{"dtype":"U8","shape":[4],"data_offsets":[)" + second + "]}}";
  };
  EXPECT_TRUE(says(error(file_of(two("0,4", "5,9"), "123456789")),
                   {"a hole of 1 bytes before tensor 'b'"}));
  EXPECT_TRUE(
      says(error(file_of(two("4,8", "1,5"), "12345678")), {"a hole of 1 bytes before tensor 'b'"}));
  EXPECT_TRUE(says(error(file_of(two("0,4", "3,7"), "1234567")), {"tensor 'b' overlaps"}));
  EXPECT_TRUE(says(error(file_of(two("0,4", "0,4"), "1234")), {"tensor 'b' overlaps"}));
  EXPECT_NO_THROW(read(file_of(two("4,8", "0,4"), "12345678")));
}

TEST_F(Safetensors, RefusesOffsetsThatAreNone) {
  const auto error_of = [&](const std::string& offsets) {
    return error_of_tensor(R"("dtype":"F32","shape":[4],"data_offsets":)" + offsets);
  };
  EXPECT_TRUE(says(error_of("[16,0]"), {"tensor 'a'", "data_offsets 16, 0"}));
  EXPECT_TRUE(says(error_of("[0]"), {"tensor 'a'", "data_offsets"}));
  EXPECT_TRUE(says(error_of("[0,16,16]"), {"tensor 'a'", "data_offsets"}));
  EXPECT_TRUE(says(error_of("[-1,15]"), {"data_offsets holds -1"}));
  EXPECT_TRUE(says(error_of("[0,16.0]"), {"data_offsets holds 16.0"}));
  EXPECT_TRUE(says(error_of("[0,18446744073709551615]"), {"18446744073709551615"}));
  EXPECT_TRUE(says(error_of("[0,\"16\"]"), {"data_offsets holds \"16\""}));
  EXPECT_TRUE(says(error_of("16"), {"data_offsets is not a list"}));
  EXPECT_TRUE(says(error_of("[4,20]"), {"hole of 4 bytes"}));
  EXPECT_TRUE(says(error_of("[0,8]"), {"takes 16 bytes", "hold 8"}));
}

TEST_F(Safetensors, RefusesWrongFields) {
  EXPECT_TRUE(says(error(file_of(R"({"a":3})", "")), {"tensor 'a' is not described by an object"}));
  EXPECT_TRUE(says(error_of_tensor(R"("shape":[4],"data_offsets":[0,16])"), {"'a' has no dtype"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":"F32","data_offsets":[0,16])"), {"has no shape"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":"F32","shape":[4])"), {"has no data_offsets"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,16],"x":1)"),
                   {"fields that are not known"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":"f32","shape":[4],"data_offsets":[0,16])"),
                   {"dtype 'f32' is not known"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":4,"shape":[4],"data_offsets":[0,16])"),
                   {"the dtype is not a string"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"),
                   {"shape holds -4"}));
  EXPECT_TRUE(says(error_of_tensor(R"("dtype":"F32","shape":[5],"data_offsets":[0,16])"),
                   {"F32 [5] takes 20 bytes", "hold 16"}));
  EXPECT_TRUE(says(
      error_of_tensor(R"("dtype":"F32","shape":[4294967296,4294967297],"data_offsets":[0,16])"),
      {"too large"}));
}

TEST_F(Safetensors, RefusesMetadataThatIsNotText) {
  EXPECT_TRUE(says(error(file_of(R"({"__metadata__":{"k":1}})", "")), {"'k' is not a string"}));
  EXPECT_TRUE(says(error(file_of(R"({"__metadata__":"k"})", "")), {"not an object"}));
}

TEST_F(Safetensors, NamesFilesThatCannotBeRead) {
  EXPECT_TRUE(says(message_of<FileError>([&] { SafetensorsFile(directory_ / "none"); }),
                   {(directory_ / "none").string(), "no such file"}));
  EXPECT_TRUE(says(message_of<FileError>([&] { SafetensorsFile{directory_.path()}; }),
                   {directory_.path().string(), "not a regular file"}));
}

TEST_F(Safetensors, NamesATensorOfAnotherTypeOrNone) {
  const SafetensorsFile file = read(kPythonFile);
  EXPECT_TRUE(says(message_of<FileError>([&] { file.f32("n"); }),
                   {path_.string(), "tensor 'n'", "expected dtype F32, found I64"}));
  EXPECT_TRUE(says(message_of<FileError>([&] { file.f32("x"); }),
                   {path_.string(), "there is no tensor 'x'"}));
}

TEST_F(Safetensors, MatchListsEveryDifferenceAtOnce) {
  const SafetensorsFile file = read(kPythonFile);
  const std::vector<TensorSpec> expected{
      {"a", "F32", {3, 1}}, {"n", "F32", {}}, {"gone", "F32", {7}}, {"lost", "I64", {}}};
  const std::string message = message_of<FileError>([&] { file.match(expected); });
  EXPECT_TRUE(says(message, {path_.string(), "a: expected F32 [3, 1], found F32 [3]",
                             "n: expected F32 [], found I64 []", "missing gone F32 [7]",
                             "missing lost I64 []", "surplus b F32 [2, 2]"}));
  const std::string tolerant = message_of<FileError>([&] { file.match(expected, true); });
  EXPECT_EQ(tolerant.find("surplus"), std::string::npos);
}

TEST_F(Safetensors, MatchAcceptsWhatFits) {
  const SafetensorsFile file = read(kPythonFile);
  const std::vector<TensorSpec> some{{"a", "F32", {3}}, {"n", "I64", {}}};
  EXPECT_NO_THROW(file.match(some, true));
  const std::vector<TensorSpec> all{{"b", "F32", {2, 2}}, {"a", "F32", {3}}, {"n", "I64", {}}};
  EXPECT_NO_THROW(file.match(all));
}

TEST_F(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const float value = 1;
  const auto write_error = [&](std::vector<TensorToWrite> tensors) {
    return message_of<FileError>([&] { write_safetensors(path_, tensors); });
  };
  const TensorToWrite good{{"a", "F32", {1}}, &value};
  EXPECT_TRUE(says(write_error({good, good}), {path_.string(), "two tensors called 'a'"}));
  EXPECT_TRUE(says(write_error({{{"a", "float", {1}}, &value}}), {"'a'", "dtype 'float'"}));
  EXPECT_TRUE(says(write_error({{{"__metadata__", "F32", {1}}, &value}}), {"__metadata__"}));
  EXPECT_TRUE(says(write_error({{{"\xff", "F32", {1}}, &value}}), {path_.string(), "UTF-8"}));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Safetensors, KnowsTheDtypes) {
  EXPECT_EQ(safetensors_dtype_bytes("F32"), 4);
  EXPECT_EQ(safetensors_dtype_bytes("BF16"), 2);
  EXPECT_EQ(safetensors_dtype_bytes("BOOL"), 1);
  EXPECT_EQ(safetensors_dtype_bytes("U64"), 8);
  EXPECT_EQ(safetensors_dtype_bytes("F31"), 0);
}

}  // namespace
}  // namespace ringlet::train
