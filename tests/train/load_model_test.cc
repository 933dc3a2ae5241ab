// Weights from elsewhere: names behind a prefix, floats of other widths, tensors that are missing
// or too many, numbers that are not finite, and files of other formats.
#include "train/files/load_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/narrow_floats.h"
#include "nn/layers/batch_norm2d.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/foreign_format.h"
#include "train/loop/diagnose.h"
#include "train/recipe/models.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::says;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::string bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A tensor that a test may change before it is written.
struct Draft {
  TensorSpec spec;
  std::string bytes;

  std::vector<float> floats() const {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <class T, class Convert>
  void become(const char* dtype, Convert convert) {
    std::vector<T> values;
    for (const float value : floats()) values.push_back(convert(value));
    spec.dtype = dtype;
    bytes = bytes_of_values(values);
  }
};

/// A resnet20, which has batch norm, and its weights as a run would save them.
class LoadModel : public ::testing::Test {
 protected:
  LoadModel() {
    for (const auto* p : registry_.parameters) state_.values.push_back(some(p->shape));
    for (const auto* b : registry_.buffers) state_.buffers.push_back(some(b->shape));
    state_.counters.assign(registry_.counters.size(), 7);
    save_model(file(), registry_, state_, {});
  }

  /// Numbers that each of the types holds exactly.
  static std::vector<float> some(const Shape& shape) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      values.push_back(static_cast<float>(i % 7) - 2.5F);
    }
    return values;
  }
  fs::path file() const { return folder_ / "w.safetensors"; }
  HostState load() const { return load_model(file(), registry_); }
  std::string refusal() const {
    return message_of<FileError>([this] { load(); });
  }

  /// Writes the file again, each tensor as `change` leaves it; false leaves it out.
  void rewrite(const std::function<bool(Draft&)>& change, const std::vector<Draft>& more = {}) {
    save_model(file(), registry_, state_, {});
    std::vector<Draft> drafts;
    const SafetensorsFile whole(file());
    for (const auto& entry : whole.entries()) {
      const auto* bytes = reinterpret_cast<const char*>(entry.bytes.data());
      Draft draft{entry.spec, {bytes, entry.bytes.size()}};
      if (change(draft)) drafts.push_back(std::move(draft));
    }
    drafts.insert(drafts.end(), more.begin(), more.end());
    std::vector<TensorToWrite> tensors;
    for (const Draft& draft : drafts) tensors.push_back({draft.spec, draft.bytes.data()});
    write_safetensors(file(), tensors);
  }
  void rename(const std::string& prefix, const std::vector<Draft>& more = {}) {
    rewrite(
        [&](Draft& draft) {
          draft.spec.name = prefix + draft.spec.name;
          return true;
        },
        more);
  }
  /// Sets one number of a tensor.
  void put(const std::string& name, std::size_t at, float value) {
    rewrite([&](Draft& draft) {
      if (draft.spec.name == name) {
        std::memcpy(draft.bytes.data() + at * sizeof value, &value, sizeof value);
      }
      return true;
    });
  }

  const testing::TemporaryDirectory folder_;
  const std::unique_ptr<nn::Layer> model_ =
      make_model("resnet20", {.channels = 3, .height = 32, .width = 32, .outputs = 10});
  const nn::Registry registry_ = nn::register_model(*model_);
  HostState state_;
};

TEST_F(LoadModel, CountersMayBeMissingAsInPyTorch) {
  ASSERT_FALSE(registry_.counters.empty());
  rewrite([](Draft& draft) { return draft.spec.dtype != "I64"; });
  const HostState found = load();
  EXPECT_EQ(found.counters, std::vector<std::int64_t>(registry_.counters.size(), 0));
  EXPECT_TRUE(found.buffers == state_.buffers);
}

TEST_F(LoadModel, CountersThatSomebodyMadeFloatsAreCounts) {
  const auto with = [&](float count) {
    rewrite([&](Draft& draft) {
      if (draft.spec.dtype == "I64")
        draft = {{draft.spec.name, "F32", {}}, bytes_of_values<float>({count})};
      return true;
    });
  };
  with(7);
  EXPECT_EQ(load().counters, state_.counters);
  with(7.5);
  EXPECT_TRUE(says(refusal(), {"num_batches_tracked' is 7.5", "no count of batches"}));
}

TEST_F(LoadModel, FloatsOfEveryWidthAreTaken) {
  const auto as = [&](auto become) {
    rewrite([&](Draft& draft) {
      if (draft.spec.dtype == "F32") become(draft);
      return true;
    });
    EXPECT_TRUE(bytes_of(load()) == bytes_of(state_));
    return rounding_of(file());
  };
  EXPECT_EQ(as([](Draft& d) { d.become<Half>("F16", to_half); }), "");
  EXPECT_EQ(as([](Draft& d) { d.become<BFloat16>("BF16", to_bfloat16); }), "");
  EXPECT_TRUE(says(as([](Draft& d) { d.become<double>("F64", [](float x) { return double{x}; }); }),
                   {"w.safetensors", "F64", "rounded to f32"}));
}

TEST_F(LoadModel, WhatIsBeyondF32IsRefused) {
  rewrite([](Draft& draft) {
    if (draft.spec.name == "fc.bias") draft.become<double>("F64", [](float) { return 1e300; });
    return true;
  });
  EXPECT_TRUE(says(refusal(), {"'fc.bias' has inf as f32 at [0]"}));
}

TEST_F(LoadModel, WhatStandsBeforeAllNamesIsPassedOver) {
  for (const char* prefix : {"model.", "module.", "_orig_mod.", "module.model.", "net.backbone."}) {
    rename(prefix);
    EXPECT_TRUE(bytes_of(load()) == bytes_of(state_)) << prefix;
  }
}

TEST_F(LoadModel, WhatIsTooMuchIsNamedWithACure) {
  const Draft surplus{{"optimizer.state.0.exp_avg", "F32", {1}}, bytes_of_values<float>({1})};
  for (const char* prefix : {"", "model."}) {
    rename(prefix, {surplus});
    const std::string message = refusal();
    EXPECT_TRUE(says(message, {"has more than the model: optimizer.state.0.exp_avg F32 [1]",
                               "save_file(model.state_dict(), NEW)"}));
    EXPECT_EQ(message.find("conv1"), std::string::npos) << message;
  }
}

TEST_F(LoadModel, NamesWhatIsMissingBehindThePrefix) {
  rewrite([](Draft& draft) {
    draft.spec.name = "model." + draft.spec.name;
    return draft.spec.name != "model.fc.bias";
  });
  const std::string message = refusal();
  EXPECT_TRUE(says(message, {"missing model.fc.bias F32 [10]"}));
  EXPECT_EQ(message.find("conv1"), std::string::npos) << message;
}

TEST_F(LoadModel, AnOptimisersStateIsNoModel) {
  const fs::path state = folder_ / "optimizer.safetensors";
  fs::rename(file(), state);
  EXPECT_TRUE(says(message_of<FileError>([&] { load_model(state, registry_); }),
                   {"optimizer.safetensors", "not a model", "model.safetensors beside it"}));
}

TEST_F(LoadModel, NumbersThatAreNotFiniteAreNamedUnlessTheyAreWanted) {
  const std::vector<std::string> tensors{"conv1.weight", "fc.weight", "fc.bias", "bn1.running_mean",
                                         "bn1.running_var"};
  for (const std::string& name : tensors) {
    for (const float value : {kNan, -kNan, HUGE_VALF, -HUGE_VALF}) {
      put(name, 5, value);
      EXPECT_TRUE(says(refusal(), {"w.safetensors: tensor '" + name + "' has ",
                                   "(not finite: 1 of its ", "--allow-nonfinite"}));
      EXPECT_NO_THROW(load_model(file(), registry_, Head::as_in_file, NonFinite::taken));
    }
  }
  put("fc.weight", 3 * 64 + 5, kNan);
  EXPECT_TRUE(
      says(refusal(), {"'fc.weight' has nan at [3, 5] (not finite: 1 of its 640 numbers)"}));
  put("bn1.running_var", 2, -HUGE_VALF);
  EXPECT_TRUE(says(refusal(), {"'bn1.running_var' has -inf at [2]"}));
}

TEST_F(LoadModel, ANewHeadNeedsNoFiniteOldOne) {
  put("fc.weight", 0, kNan);
  const auto other =
      make_model("resnet20", {.channels = 3, .height = 32, .width = 32, .outputs = 3});
  EXPECT_NO_THROW(load_model(file(), nn::register_model(*other), Head::replaced));
}

TEST_F(LoadModel, AFolderStandsForTheModelOfItsRun) {
  EXPECT_EQ(model_file_of(file()), file());
  EXPECT_EQ(model_file_of("/no/such"), "/no/such");
  fs::create_directories(folder_ / "run/state");
  EXPECT_EQ(model_file_of(folder_ / "run"), folder_ / "run/model.safetensors");
  fs::copy_file(file(), folder_ / "run/state/model.safetensors");
  EXPECT_EQ(model_file_of(folder_ / "run"), folder_ / "run/state/model.safetensors");
  fs::copy_file(file(), folder_ / "run/model.safetensors");
  EXPECT_EQ(model_file_of(folder_ / "run"), folder_ / "run/model.safetensors");
}

TEST_F(LoadModel, OfAnOptimisersStateNeedsFiniteNumbersToo) {
  state_.optimizer.push_back({"velocity", state_.values});
  state_.optimizer[0].tensors[0][1] = kNan;
  fs::create_directory(folder_ / "run");
  save_state(folder_ / "run", registry_, state_, {}, {}, {}, 0);
  const SavedState saved = read_state(folder_ / "run");
  EXPECT_TRUE(says(message_of<FileError>([&] { load_state(saved, registry_, {"velocity"}); }),
                   {"optimizer.safetensors: tensor 'conv1.weight' has nan at [0, 0, 0, 1]"}));
}

TEST_F(LoadModel, WhatIsSavedIsFiniteBuffersToo) {
  EXPECT_NO_THROW(require_finite(state_, registry_, 3));
  state_.buffers[1][2] = kNan;
  EXPECT_TRUE(says(message_of<Error>([&] { require_finite(state_, registry_, 3); }),
                   {"step 3", "buffer " + registry_.buffers[1]->name}));
}

/// What torch.save() of version 1.5 begins with.
const std::string kOldTorch("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M");

// The first bytes of real files, as far as they matter.
TEST(ForeignFormat, IsToldByItsFirstBytes) {
  const std::string zip("PK\x03\x04\0\0\x08\x08\0\0", 10);
  const std::pair<std::string, const char*> known[] = {
      {zip + std::string(20, '\0') + "net/data/0FB", "TorchScript"},
      {zip + std::string(20, '\0') + "net/data.pklFB net/code/__torch__/net.py", "TorchScript"},
      {std::string("\x80\x02}q\0", 5), "pickle"},
      {std::string("\x80\x04\x95", 3), "pickle"},
      {zip + std::string(20, '\0') + "arr_0.npy", "npz"},
      {zip + std::string(20, '\0') + "weights.txt", "zip archive"},
      {"\x93NUMPY\x01", "single array"},
      {std::string("\x08\x07\x12\x07pytorch", 11), "ONNX"},
      {std::string("\x08\x08:\xc0\x9b", 5), "ONNX"},
      {"\x89HDF\r\n\x1a\n", "HDF5"},
      {std::string("GGUF\x03\0\0\0", 8), "GGUF"},
      {"\x1f\x8b\x08", "compressed"},
      {"BZh91AY", "compressed"},
      {"\xfd\x37zXZ", "compressed"},
      {"\x28\xb5\x2f\xfd", "compressed"},
      {"weights.st" + std::string(247, '\0') + "ustar ", "tar"},
      {"The weights are elsewhere.\n", "text"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"},
      {"<!DOCTYPE html><html>", "web page"},
      {"\n<html lang=\"en\">", "web page"},
      {"{\"metadata\": {\"total_size\": 1}}", "JSON"}};
  for (const auto& [head, word] : known) {
    const auto found = recognise_foreign(head);
    ASSERT_TRUE(found) << word;
    EXPECT_NE(found->is.find(word), std::string::npos) << found->is;
    EXPECT_FALSE(found->remedy.empty());
  }
  const std::string saved = zip + std::string(20, '\0') + "archive/data.pklFB";
  EXPECT_TRUE(is_torch_archive(saved));
  EXPECT_TRUE(is_torch_archive(kOldTorch));
  EXPECT_FALSE(recognise_foreign(kOldTorch));
  EXPECT_FALSE(is_torch_archive(zip + std::string(20, '\0') + "net/data/0FB net/data.pkl"));
  for (const std::string& head :
       {saved, std::string(), std::string("short"), std::string(16, '\xff'),
        std::string("\x08\x12\0\0\0\0\0\0{\"a\"", 12), std::string("\x08\x01\x12\x90\x1a", 5),
        std::string("text\x01 or not"), std::string("{\"\0\0\0\0\0\0{\"a\"", 12),
        std::string(8, '\0')}) {
    EXPECT_FALSE(recognise_foreign(head)) << head;
  }
}

TEST(ForeignFormat, IsNamedWhereWeightsAreRead) {
  const testing::TemporaryDirectory folder;
  testing::write_file(folder / "w.bin", std::string("\x80\x04\x95", 3));
  EXPECT_TRUE(says(message_of<FileError>([&] { SafetensorsFile(folder / "w.bin"); }),
                   {"w.bin: is a pickle", "not safetensors", "safetensors.numpy.save_file"}));
  testing::write_file(folder / "unknown", std::string(16, '\xff'));
  EXPECT_TRUE(says(message_of<FileError>([&] { SafetensorsFile(folder / "unknown"); }),
                   {"unknown: is no safetensors file, and of no kind", "ff ff ff ff ff ff ff ff"}));
}

/// iresnet's last norm: nothing reads the weight, so another in a file would count for nothing.
TEST(LoadModelOfOnes, AWeightThatStaysIsTheFilesToo) {
  nn::BatchNorm2d norm(3, {.weight_is_one = true});
  nn::Registry registry;
  norm.register_in(registry, "features.");
  const testing::TemporaryDirectory folder;
  const auto loaded = [&](const std::vector<float>& weight) {
    save_model(folder / "w.safetensors", registry,
               {.values = {{0, 0, 0}},
                .buffers = {weight, {0, 0, 0}, {1, 1, 1}},
                .counters = {0},
                .optimizer = {}},
               {});
    return load_model(folder / "w.safetensors", registry);
  };
  EXPECT_EQ(loaded({1, 1, 1}).buffers[0], std::vector<float>(3, 1));
  const std::string message = message_of<FileError>([&] { loaded({1, 0.5F, 1}); });
  EXPECT_TRUE(testing::says(message, {"'features.weight' is 0.5 at [1]", "has 1 there"}))
      << message;
}

}  // namespace
}  // namespace ringlet::train
