#include "train/recipe/models.h"

#include "base/error.h"
#include "nn/models/iresnet.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "nn/models/resnet.h"
#include "train/recipe/options.h"

namespace ringlet::train {

namespace {

std::unique_ptr<nn::Layer> make_lenet(const nn::ModelInput& input) {
  return nn::make_lenet(input, nn::LeNetStart::practitioner);
}

std::unique_ptr<nn::Layer> make_textbook_lenet(const nn::ModelInput& input) {
  return nn::make_lenet(input, nn::LeNetStart::textbook);
}

/// What learns fast and well.
Recipe one_cycle() {
  Recipe recipe;
  recipe.batch_size = 128;
  recipe.epochs = 6;
  recipe.lr = 0.1;
  recipe.momentum = 0.9;
  recipe.nesterov = true;
  recipe.weight_decay = 5e-4;
  recipe.schedule = ScheduleKind::one_cycle;
  return recipe;
}

/// "Dive into Deep Learning", section 13.5, to the letter.
Recipe textbook() {
  Recipe recipe;
  recipe.batch_size = 256;
  recipe.epochs = 10;
  recipe.lr = 0.2;
  recipe.normalize = false;
  return recipe;
}

/// What residual networks are trained with.
Recipe residual() {
  Recipe recipe = one_cycle();
  recipe.epochs = 15;
  return recipe;
}

Recipe deep_residual() {
  Recipe recipe = residual();
  recipe.batch_size = 64;
  recipe.lr = 0.05;
  return recipe;
}

// What the models were made for, and published with.
constexpr nn::ModelInput kGrey{.channels = 1, .height = 28, .width = 28, .outputs = 10};
constexpr nn::ModelInput kCifar{.channels = 3, .height = 32, .width = 32, .outputs = 10};
constexpr nn::ModelInput kImageNet{.channels = 3, .height = 224, .width = 224, .outputs = 1000};
constexpr nn::ModelInput kFaces{.channels = 3, .height = 112, .width = 112, .outputs = 512};

struct Entry {
  const char* name;
  std::unique_ptr<nn::Layer> (*make)(const nn::ModelInput& input);
  Recipe (*recipe)();
  nn::ModelInput input;
  const char* help;
};

constexpr Entry kModels[] = {
    {"lenet", make_lenet, one_cycle, kGrey,
     "two convolutions with average pooling and two linear layers; Kaiming's normal weights, "
     "pixels less their mean over their deviation (of the training images)"},
    {"lenet-d2l", make_textbook_lenet, textbook, kGrey,
     "the same network, from the textbook \"Dive into Deep Learning\", 13.5, to the letter: "
     "weights N(0, 0.01^2), pixels / 255; it hardly moves in its first epoch"},
    {"mlp", nn::make_mlp, one_cycle, kGrey,
     "three linear layers; weights and pixels as PyTorch's defaults and lenet's"},
    {"resnet18", nn::make_resnet18, deep_residual, kImageNet,
     "torchvision's residual network of 18 layers with batch norm, for photographs; its weights "
     "load with --init"},
    {"resnet34", nn::make_resnet34, deep_residual, kImageNet, "torchvision's of 34 layers"},
    {"resnet50", nn::make_resnet50, deep_residual, kImageNet, "torchvision's of 50 layers"},
    {"resnet18-cifar", nn::make_resnet18_cifar, residual, kCifar,
     "resnet18 for small images: a 3x3 convolution at its start, and no pooling behind it"},
    {"resnet20", nn::make_resnet20, residual, kCifar,
     "He et al.'s residual network of 20 layers for CIFAR-10, shortcuts of their option B"},
    {"iresnet18", nn::make_iresnet18, deep_residual, kFaces,
     "InsightFace's residual network of 18 layers with PReLU, for faces of 112 x 112; its weights "
     "load with --init"},
    {"iresnet34", nn::make_iresnet34, deep_residual, kFaces, "InsightFace's of 34 layers"},
    {"iresnet50", nn::make_iresnet50, deep_residual, kFaces, "InsightFace's of 50 layers"},
    {"iresnet100", nn::make_iresnet100, deep_residual, kFaces, "InsightFace's of 100 layers"},
};

const Entry& entry_of(std::string_view name) {
  std::string known;
  for (const Entry& entry : kModels) {
    if (name == entry.name) return entry;
    known += known.empty() ? entry.name : std::string(", ") + entry.name;
  }
  throw ContractError("there is no model '" + std::string(name) + "'; the models are " + known);
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

std::string model_help(std::string_view name) { return entry_of(name).help; }

nn::ModelInput usual_input(std::string_view name) { return entry_of(name).input; }

std::unique_ptr<nn::Layer> make_model(std::string_view name, const nn::ModelInput& input) {
  return entry_of(name).make(input);
}

Recipe default_recipe(const std::string& name) {
  Recipe recipe = entry_of(name).recipe();
  recipe.model = name;
  return recipe;
}

}  // namespace ringlet::train
