// Weights that others have published for a model of ours, found by the model's name in the caches
// that their programs keep. Nothing is fetched.
//
//   torchvision   $TORCH_HOME, else $XDG_CACHE_HOME/torch, else ~/.cache/torch:
//                 hub/checkpoints/resnet18-f37072fd.pth. The name has the beginning of the file's
//                 SHA-256, which is compared
//   timm          $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
//                 ~/.cache/huggingface/hub: models--timm--resnet18.*/snapshots/*/model.safetensors.
//                 A link to a blob that is named by its SHA-256 is compared as well
//
// timm's residual networks have torchvision's names. Those of transformers (microsoft/resnet-18)
// have others, and are no weights of ours.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringlet::train {

/// Files of torchvision for the model `name`, the best first: "resnet18-f37072fd.pth"; none, where
/// it has none.
std::vector<std::string> torchvision_files(const std::string& name);

/// Whether that is a model's name, and no file or folder.
bool names_weights(const std::filesystem::path& named);

/// What --init names: `named` itself where there is such a file or folder, or where it is no
/// model's name; else the weights of that name. Throws FileError saying where such are to be had,
/// and where a file is not the one that its name promises.
std::filesystem::path find_weights(const std::filesystem::path& named);

}  // namespace ringlet::train
