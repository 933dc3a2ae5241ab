// Weights in files of torch.save(), put together by hand: any view of any storage; and what is no
// such file.
#include "train/files/torch_archive.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "base/files/file_error.h"
#include "tests/support/testdata.h"
#include "tests/support/torch_files.h"
#include "train/files/load_model.h"
#include "train/files/safetensors.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::old_torch_file;
using testing::pickled_dict;
using testing::pickled_number;
using testing::pickled_tensor;
using testing::pickled_tuple;
using testing::pickled_word;
using testing::says;
using testing::torch_entries;
using testing::torch_file;
using testing::zip_of;
using testing::ZippedEntry;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const std::string kSix = bytes_of<float>({0, 1, 2, 3, 4, 5});
const std::string kRows = pickled_tensor({.stored = 6, .shape = {2, 3}, .strides = {3, 1}});

/// What is wrong with a file of these bytes, read to its end; empty: nothing.
std::string error_of(const std::string& bytes) {
  try {
    TorchArchive archive(std::make_unique<std::istringstream>(bytes), bytes.size(), "w.pth");
    const SafetensorsHeader header = archive.header();
    std::string all(header.tensors.empty() ? 0 : header.tensors.back().end, '\0');
    archive.read(all.data(), all.size());
  } catch (const FileError& error) {
    return error.what();
  }
  return {};
}
std::string error_of_value(const std::string& value) { return error_of(torch_file(value, {kSix})); }

class TorchFile : public ::testing::Test {
 protected:
  SafetensorsFile read(const std::string& bytes) {
    testing::write_file(folder_ / "w.pth", bytes);
    return SafetensorsFile(folder_ / "w.pth");
  }
  testing::TemporaryDirectory folder_;
};

std::vector<float> floats(const SafetensorsFile& file, const std::string& name) {
  const auto values = file.f32(name);
  return {values.begin(), values.end()};
}

TEST_F(TorchFile, ViewsOfAStorageAreGatheredRowByRow) {
  const auto view = [](std::int64_t first, std::vector<std::int64_t> shape,
                       std::vector<std::int64_t> strides) {
    return pickled_tensor(
        {.stored = 6, .first = first, .shape = std::move(shape), .strides = std::move(strides)});
  };
  const std::string value =
      pickled_dict({{"rows", view(0, {2, 3}, {3, 1})},
                    {"turned", view(0, {3, 2}, {1, 3})},
                    {"last", view(4, {2}, {1})},
                    {"every other", view(1, {1, 3}, {INT64_MAX, 2})},
                    {"one", view(5, {}, {})},
                    {"of no bytes", view(0, {0, 1LL << 62, 1LL << 62}, {7, 7, 7})}});
  for (const bool wide : {false, true}) {
    const SafetensorsFile file = read(zip_of(torch_entries(value, {kSix}), wide));
    EXPECT_EQ(floats(file, "rows"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(floats(file, "turned"), (std::vector<float>{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(floats(file, "last"), (std::vector<float>{4, 5}));
    EXPECT_EQ(floats(file, "every other"), (std::vector<float>{1, 3, 5}));
    EXPECT_EQ(floats(file, "one"), (std::vector<float>{5}));
    EXPECT_TRUE(floats(file, "of no bytes").empty());
    EXPECT_EQ(file.entries().size(), 6U);
  }
}

TEST_F(TorchFile, OfBeforeVersion1_6IsReadAsWell) {
  const std::string value = pickled_dict(
      {{"state_dict",
        pickled_dict(
            {{"turned",
              pickled_tensor(
                  {.key = "1", .stored = 6, .shape = {3, 2}, .strides = {1, 3}, .part_of = "N"})},
             {"last", pickled_tensor({.stored = 2, .first = 1, .shape = {}})}})},
       {"epoch", "K\x01"}});
  const SafetensorsFile file = read(old_torch_file(value, {bytes_of<float>({8, 9}), kSix}));
  EXPECT_EQ(floats(file, "turned"), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(floats(file, "last"), (std::vector<float>{9}));
  EXPECT_EQ(file.entries().size(), 2U);
}

TEST(TorchPickle, OfBeforeVersion1_6HasToBeWhole) {
  const std::string value = pickled_dict({{"w", kRows}});
  const std::string whole = old_torch_file(value, {kSix});
  ASSERT_EQ(error_of(whole), "");
  EXPECT_TRUE(says(error_of(whole.substr(0, whole.size() - 1)),
                   {"w.pth: ends before the 24 bytes of storage 0"}));
  for (std::size_t bytes = 14; bytes < whole.size(); ++bytes) {
    EXPECT_NE(error_of(whole.substr(0, bytes)), "") << bytes;
  }
  EXPECT_TRUE(says(error_of(whole + "x"), {"has 1 bytes behind its last storage"}));
  EXPECT_TRUE(says(error_of(old_torch_file(value, {kSix}, {.more_elements = 1})),
                   {"its storage 0 has 7 elements, and 6 are claimed"}));
  EXPECT_TRUE(says(error_of(old_torch_file(value, {kSix}, {.little_endian = "\x89"})),
                   {"not little-endian"}));
  const std::string other_list = "the list of its storages is not that of its tensors";
  EXPECT_TRUE(says(error_of(old_torch_file(value, {kSix}, {.keys = {"7"}})), {other_list}));
  EXPECT_TRUE(
      says(error_of(old_torch_file(value, {kSix, kSix}, {.keys = {"0", "0"}})), {other_list}));
  EXPECT_TRUE(says(error_of(old_torch_file(value, {})), {"in data/0, which is not there"}));
  const std::string part = pickled_tensor(
      {.stored = 6, .shape = {6}, .strides = {1}, .part_of = pickled_tuple({"K\x01"})});
  EXPECT_TRUE(says(error_of(old_torch_file(pickled_dict({{"w", part}}), {kSix})),
                   {"a storage is a part of another one"}));
}

TEST_F(TorchFile, OfEveryTypeIsTakenForFloats) {
  const auto one_of = [](const std::string& key, const std::string& type) {
    return pickled_tensor({.key = key, .type = type, .stored = 1, .shape = {1}, .strides = {1}});
  };
  const SafetensorsFile file = read(
      torch_file(pickled_dict({{"f64", one_of("0", "DoubleStorage")},
                               {"f16", one_of("1", "HalfStorage")},
                               {"bf16", one_of("2", "BFloat16Storage")},
                               {"i64", one_of("3", "LongStorage")},
                               {"i32", one_of("4", "IntStorage")},
                               {"i16", one_of("5", "ShortStorage")},
                               {"i8", one_of("6", "CharStorage")},
                               {"u8", one_of("7", "ByteStorage")}}),
                 {bytes_of<double>({-2.5}), "\xc0\xbe", "\xe0\xbf", bytes_of<std::int64_t>({-3}),
                  bytes_of<std::int32_t>({-4}), bytes_of<std::int16_t>({-5}), "\xfa", "\xf9"}));
  const std::vector<std::pair<const char*, float>> expected{
      {"f64", -2.5F}, {"f16", -1.6875F}, {"bf16", -1.75F}, {"i64", -3.F},
      {"i32", -4.F},  {"i16", -5.F},     {"i8", -6.F},     {"u8", 249.F}};
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(floats_of(file, name), std::vector<float>{value}) << name;
  }
}

TEST_F(TorchFile, WeightsAreFoundAmongWhatACheckpointHas) {
  const std::string weights = pickled_dict({{"module.w", kRows}});
  const std::string args =
      "cargparse\nNamespace\n)\x81" + pickled_dict({{"lr", "G" + std::string(8, '\1')}}) + "b";
  const std::string scalar =
      "cnumpy.core.multiarray\nscalar\n" +
      pickled_tuple({"cnumpy\ndtype\n" + pickled_tuple({pickled_word("f8")}) + "R" +
                         pickled_tuple({pickled_number(3)}) + "b",
                     pickled_word("12345678")}) +
      "R";
  const std::string optimizer =
      pickled_dict({{"state", "}K\x01" + pickled_dict({{"momentum_buffer", kRows}}) + "s"}});
  const auto checkpoint = [&](const std::string& key) {
    return pickled_dict({{"epoch", "K\x05"},
                         {"best", pickled_tensor({.stored = 6, .shape = {}, .strides = {}})},
                         {"args", args},
                         {"loss", scalar},
                         {"optimizer", optimizer},
                         {"seed", "\x8a\x09" + std::string(9, '\x11')},
                         {key, weights}});
  };
  for (const char* key : {"state_dict", "model_state_dict", "model", "net"}) {
    const std::string bytes = torch_file(checkpoint(key), {kSix});
    EXPECT_EQ(floats(read(bytes), "module.w").size(), 6U) << key;
    EXPECT_EQ(read(bytes).entries().size(), 1U) << key;
    EXPECT_EQ(SafetensorsStream(folder_ / "w.pth").header().under, key);
  }
  (void)read(torch_file(pickled_dict({{"model", checkpoint("state_dict")}}), {kSix}));
  EXPECT_EQ(SafetensorsStream(folder_ / "w.pth").header().under, "model.state_dict");
  // A Parameter, with what hooks it has; and Python 2's OrderedDict, a list of pairs.
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n" +
                                pickled_tuple({kRows, "\x88", "ccollections\nOrderedDict\n)R"}) +
                                "R";
  const std::string ordered =
      "ccollections\nOrderedDict\n" +
      pickled_tuple(
          {testing::pickled_list({testing::pickled_list({pickled_word("p"), parameter})})}) +
      "R" + pickled_dict({{"_metadata", "}"}}) + "b";
  EXPECT_EQ(floats(read(torch_file(ordered, {kSix})), "p").size(), 6U);
}

TEST_F(TorchFile, IsSummedUpAsAWhole) {
  const std::string bytes = torch_file(pickled_dict({{"w", kRows}}), {kSix});
  std::string other = bytes;
  other[other.find("3\n")] = '4';
  EXPECT_NE(read(bytes).sum(), read(other).sum());
}

TEST(TorchPickle, CallsNothing) {
  for (const char* name : {"os\nsystem", "posix\nsystem", "builtins\neval", "__builtin__\ngetattr",
                           "subprocess\nPopen", "numpyx\nf", "torch.nn.modules.conv\nConv2d",
                           "__main__\nNet", "copyreg\n__newobj__"}) {
    const std::string call =
        "c" + std::string(name) + "\n" + pickled_tuple({pickled_word("true")}) + "R";
    EXPECT_TRUE(says(error_of_value(pickled_dict({{"w", kRows}, {"x", call}})),
                     {"w.pth: the pickle names", "which no weights need; it is not called",
                      "saved as a state_dict() alone"}))
        << name;
  }
  // In protocol 4, by texts.
  EXPECT_TRUE(says(error_of(zip_of({{"w/data.pkl", "\x80\x04\x8c\x02os\x8c\x06system\x93)R."}})),
                   {"names os.system"}));
  for (const std::string opcode : {"i", "o", "\x82", "P", "\x97"}) {
    EXPECT_TRUE(says(error_of_value(opcode + "os\nsystem\n"), {"has the opcode", "it is not run"}));
  }
}

TEST(TorchPickle, IsRefusedWhereItWantsTooMuch) {
  const std::size_t many = 100'000;
  for (const std::string open : {"}", "]", "("}) {
    std::string nested;
    for (std::size_t i = 0; i < many; ++i) nested += open;
    EXPECT_TRUE(says(error_of_value(nested), {"nests deeper than 100 levels"})) << open;
  }
  EXPECT_TRUE(says(error_of_value("ctorch\nSize\n)R" + std::string(5'000'000, ')') + ")"),
                   {"nests deeper"}));
  EXPECT_TRUE(says(error_of_value(std::string(5'000'000, '}')), {"nests deeper"}));
  // A dict in itself ends, too.
  EXPECT_TRUE(says(error_of_value("}q\x01" + pickled_word("model") + "h\x01s"), {"no weights"}));
  // Two thousand tensors of no bytes are two thousand names.
  std::vector<std::pair<std::string, std::string>> empty;
  for (int i = 0; i < 2000; ++i) {
    empty.emplace_back("t" + std::to_string(i),
                       pickled_tensor({.key = "1", .shape = {0}, .strides = {1}}));
  }
  const testing::TemporaryDirectory folder;
  testing::write_file(folder / "w.pth", torch_file(pickled_dict(empty), {kSix, ""}));
  const SafetensorsFile file(folder / "w.pth");
  EXPECT_EQ(file.entries().size(), 2000U);
  EXPECT_LE(message_of<FileError>([&] { file.match({}); }).size(), 4300U);
  // Views of one storage, which would fill the memory.
  std::vector<std::pair<std::string, std::string>> shared;
  for (int i = 0; i < 3000; ++i) {
    shared.emplace_back("t" + std::to_string(i),
                        pickled_tensor({.stored = 100'000, .shape = {100'000}, .strides = {1}}));
  }
  EXPECT_TRUE(says(error_of(torch_file(pickled_dict(shared), {std::string(400'000, 'x')})),
                   {"would take 1200000000 bytes", "they share their numbers"}));
  // Two numbers each, far apart.
  std::vector<std::pair<std::string, std::string>> scattered;
  for (int i = 0; i < 300; ++i) {
    scattered.emplace_back("t" + std::to_string(i),
                           pickled_tensor({.stored = 100'000, .shape = {2}, .strides = {99'999}}));
  }
  EXPECT_TRUE(says(error_of(torch_file(pickled_dict(scattered), {std::string(400'000, 'x')})),
                   {"would take 120000000 bytes"}));
  // One list, made into a dict again and again.
  std::string pairs = "]q\x01(";
  for (int i = 0; i < 50'000; ++i) pairs += "NN\x86";
  pairs += "e";
  for (int i = 0; i < 100; ++i) pairs += "ccollections\nOrderedDict\nh\x01\x85R0";
  EXPECT_TRUE(says(error_of_value(pairs), {"more than 4194304 values"}));
}

TEST(TorchPickle, IsRefusedWhereATensorIsNotWhollyThere) {
  const auto error = [](const testing::PickledView& view) {
    return error_of_value(pickled_dict({{"w", pickled_tensor(view)}}));
  };
  EXPECT_EQ(error({.stored = 6, .shape = {6}, .strides = {1}}), "");
  EXPECT_TRUE(says(error({.stored = 6, .first = 1, .shape = {6}, .strides = {1}}),
                   {"w.pth: tensor 'w' is F32 [6], from element 1", "has 6 elements"}));
  EXPECT_TRUE(
      says(error({.stored = 6, .shape = {2, 3}, .strides = {4, 1}}), {"in steps of [4, 1]"}));
  EXPECT_TRUE(says(error({.stored = 6, .shape = {7}, .strides = {0}}), {"F32 [7]"}));
  EXPECT_TRUE(says(error({.stored = 6, .shape = {1LL << 62, 4}, .strides = {0, 0}}), {"F32 [46"}));
  EXPECT_TRUE(
      says(error({.stored = 6, .shape = {2}, .strides = {INT64_MAX}}), {"in steps of [92"}));
  EXPECT_TRUE(says(error({.stored = 6, .first = -1, .shape = {1}, .strides = {1}}), {"damaged"}));
  EXPECT_TRUE(says(error({.stored = 6, .shape = {-1}, .strides = {1}}), {"damaged"}));
  EXPECT_TRUE(says(error({.stored = 6, .shape = {1}, .strides = {}}), {"damaged"}));
  EXPECT_TRUE(says(error({.stored = 7, .shape = {1}, .strides = {1}}),
                   {"in data/0, which has 24 bytes, and 7 times 4 are claimed"}));
  EXPECT_TRUE(says(error({.type = "DoubleStorage", .stored = 6, .shape = {1}, .strides = {1}}),
                   {"6 times 8 are claimed"}));
  EXPECT_TRUE(says(error({.key = "5", .stored = 6, .shape = {1}, .strides = {1}}),
                   {"in data/5, which is not there"}));
  EXPECT_TRUE(
      says(error_of_value(pickled_dict({{"w", kRows}, {"w", kRows}})), {"'w' is there twice"}));
  EXPECT_TRUE(
      says(error_of_value(pickled_dict({{"w\n\x1b[2J", kRows}})), {"no plain text", "\\x1b"}));
  EXPECT_TRUE(says(error_of_value(pickled_dict({{"epoch", "K\x01"}, {"x", "}"}})),
                   {"holds no weights where they usually are, but 'epoch', 'x'"}));
  EXPECT_TRUE(says(error_of_value(kRows), {"holds no dict of tensors"}));
}

TEST(ZipDirectory, IsRefusedWhereItIsNotAsTheArchive) {
  const std::string value = pickled_dict({{"w", kRows}});
  const std::string good = torch_file(value, {kSix});
  ASSERT_EQ(error_of(good), "");
  const std::string directory = "PK\x01\x02";
  const auto with = [&](const std::string& mark, std::size_t field, const std::string& bytes) {
    std::string other = good;
    return other.replace(other.find(mark) + field, bytes.size(), bytes);
  };
  EXPECT_TRUE(
      says(error_of(with(directory, 10, "\x08")), {"'w/data.pkl' is compressed", "zip -0"}));
  EXPECT_TRUE(says(error_of(with(directory, 8, "\x01")), {"'w/data.pkl' is encrypted"}));
  EXPECT_TRUE(says(error_of(with(directory, 24, "\x01")), {"two sizes of its entry"}));
  EXPECT_TRUE(says(error_of(with(directory, 42, "\x01")), {"there is another"}));
  EXPECT_TRUE(says(error_of(with(directory, 42, "\xff\xff\xff\x7f")), {"outside of the file"}));
  EXPECT_TRUE(says(error_of(with("PK\x05\x06", 10, "\xfe\x7f")), {"cannot have 32766 entries"}));
  EXPECT_TRUE(says(error_of(with("PK\x05\x06", 10, "\x06")), {"cannot have 6 entries"}));
  EXPECT_TRUE(says(error_of(with(directory, 0, "XX")), {"entry 0 of its directory is none"}));
  EXPECT_TRUE(
      says(error_of(with("PK\x05\x06", 16, "\xff\xff\xff\x7f")), {"directory lies outside"}));
  EXPECT_TRUE(says(error_of(with("PK\x05\x06", 12, "\x30")), {"is cut off"}) ||
              says(error_of(with("PK\x05\x06", 12, "\x30")), {"cannot have"}));
  EXPECT_TRUE(says(error_of(zip_of({{"w/data.pkl", "x"}, {"w/data.pkl", "y"}})),
                   {"two entries 'w/data.pkl'"}));
  EXPECT_TRUE(says(error_of(zip_of({{"w/data.pkl", "x"}, {"v/data.pkl", "y"}})), {"two pickles"}));
  EXPECT_TRUE(says(error_of(zip_of({{"w/data", "x"}})), {"no data.pkl"}));
  std::vector<ZippedEntry> entries = torch_entries(value, {kSix});
  entries[1].bytes = "big";
  EXPECT_TRUE(says(error_of(zip_of(entries)), {"not little-endian"}));
  entries[1] = {"w/code/__torch__.py", ""};
  EXPECT_TRUE(says(error_of(zip_of(entries)), {"is a TorchScript model"}));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(error_of(good.substr(0, bytes)).empty()) << bytes;
  }
  EXPECT_TRUE(says(error_of(good.substr(0, good.size() / 2)), {"w.pth: truncated"}));
}

/// An entry in the bytes of another one.
TEST(ZipDirectory, EntriesThatOverlapAreRefused) {
  const std::string inner = zip_of({{"b", "12345678"}}).substr(0, 39);
  std::string zip = zip_of({{"a", inner}, {"b", "12345678"}});
  const auto second = zip.rfind("PK\x01\x02");
  zip.replace(second + 42, 4, testing::little_endian(31, 4));
  std::istringstream archive(zip);
  EXPECT_TRUE(says(message_of<FileError>([&] { read_zip_directory(archive, zip.size(), "z"); }),
                   {"z: its entry 'b' overlaps the one before it"}));
}

}  // namespace
}  // namespace ringlet::train
