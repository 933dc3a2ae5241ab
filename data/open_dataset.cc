#include "data/open_dataset.h"

#include <algorithm>
#include <filesystem>

#include "base/data_error.h"
#include "data/cifar10.h"
#include "data/fashion_mnist.h"
#include "data/folder_advice.h"
#include "data/idx_dataset.h"
#include "data/image_folder.h"
#include "data/random_images.h"
#include "data/record_dataset.h"
#include "data/synthetic.h"
#include "data/synthetic_faces.h"

namespace ringlet::data {

const std::vector<NamedDataset>& named_datasets() {
  static const std::vector<NamedDataset> known{
      {.name = kFashionMnistName,
       .needs = DataNeeds::files,
       .open = [](const OpenOptions& o) { return load_fashion_mnist(o.directory); }},
      {.name = kSyntheticName,
       .help = "generated images",
       .needs = DataNeeds::sizes,
       .open =
           [](const OpenOptions& o) {
             return make_synthetic(
                 {o.synthetic_train, o.synthetic_test, o.synthetic_seed, o.stop_requested});
           }},
      {.name = kCifar10Name,
       .help = "its binary version, in --data-dir",
       .needs = DataNeeds::files,
       .open = [](const OpenOptions& o) { return load_cifar10(o.directory); }},
      {.name = kSyntheticFacesName,
       .help = "drawn pictures of C identities",
       .parameter = "C",
       .fault = fault_of_identities,
       .needs = DataNeeds::sizes,
       .open =
           [](const OpenOptions& o) {
             SyntheticFacesOptions faces{.train = o.synthetic_train,
                                         .test = o.synthetic_test,
                                         .seed = o.synthetic_seed,
                                         .stop_requested = o.stop_requested};
             if (o.pictures.image_size > 0) faces.image_size = o.pictures.image_size;
             return make_synthetic_faces(o.parameter, faces);
           }},
      {.name = kRandomImagesName,
       .help = "random images of that shape",
       .parameter = "CxHxW",
       .fault = fault_of_shape,
       .needs = DataNeeds::sizes,
       .open = [](const OpenOptions& o) {
         return make_random_images(o.parameter, {o.synthetic_train, o.synthetic_test,
                                                 o.synthetic_seed, o.stop_requested});
       }}};
  return known;
}

std::vector<std::string> dataset_names(const std::vector<NamedDataset>& known) {
  std::vector<std::string> names;
  for (const NamedDataset& dataset : known) {
    names.push_back(dataset.name + (dataset.parameter.empty() ? "" : ":" + dataset.parameter));
  }
  return names;
}

const NamedDataset* find_dataset(const std::string& name, const std::vector<NamedDataset>& known) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const NamedDataset& dataset) {
    if (dataset.parameter.empty()) return dataset.name == name;
    return name.starts_with(dataset.name + ":") && name.size() > dataset.name.size() + 1;
  });
  return found == known.end() ? nullptr : &*found;
}

bool is_dataset(const std::string& name, const std::vector<NamedDataset>& known) {
  std::error_code error;
  return find_dataset(name, known) != nullptr || std::filesystem::is_directory(name, error) ||
         is_record_file(name);
}

bool is_picture_folder(const std::string& name) {
  return is_record_file(name) || (!has_idx_files(name) && has_image_folders(name));
}

bool is_split(const std::string& name) {
  return find_dataset(name) == nullptr && !is_record_file(name) && is_picture_folder(name) &&
         splits_pictures(name);
}

bool takes_image_size(const std::string& name) {
  const NamedDataset* named = find_dataset(name);
  return named != nullptr ? named->name == kSyntheticFacesName : is_picture_folder(name);
}

namespace {

/// `usual`: pixels of a side where the options leave them open.
ImageFolderOptions picture_options(const OpenOptions& options, int usual) {
  const int side = options.pictures.image_size;
  return {.image_size = side > 0 ? side : usual,
          .exif = options.pictures.exif,
          .allow_unseen_targets = options.allow_unseen_targets,
          .crop_from = options.pictures.crop_from,
          .split = options.pictures.split,
          .skip_broken = options.skip_broken,
          .only_test = options.only_test,
          .stop_requested = options.stop_requested};
}

}  // namespace

Splits open_dataset(const std::string& name, const OpenOptions& options,
                    const std::vector<NamedDataset>& known) {
  if (const NamedDataset* dataset = find_dataset(name, known)) {
    if (!dataset->open)
      throw DataError("the data set '" + name + "' has no function that opens it");
    OpenOptions with_parameter = options;
    if (!dataset->parameter.empty()) {
      with_parameter.parameter = name.substr(dataset->name.size() + 1);
    }
    return dataset->open(with_parameter);
  }
  if (is_record_file(name) && options.pictures.split > 0) {
    throw DataError(name +
                    ": --split is for a folder of pictures, and this is a .rec; leave it out");
  }
  if (is_record_file(name)) return load_records(name, picture_options(options, 0));
  if (is_picture_folder(name)) {
    const ImageFolderOptions pictures = picture_options(options, kUsualImageSize);
    const bool identities = options.train_alone && pictures.split == 0 && has_class_folders(name);
    return identities ? load_identity_folder(name, pictures) : load_image_folder(name, pictures);
  }
  if (is_dataset(name, known)) {
    if (all_idx_files(name).empty()) {
      const std::string advice = folder_advice(name);
      if (!advice.empty()) throw DataError(advice);
    }
    return load_idx_directory(name, options.allow_unseen_targets);
  }
  std::string names;
  for (const std::string& one : dataset_names(known)) names += (names.empty() ? "" : ", ") + one;
  throw DataError(
      "--data " + name + ": not a data set: expected " + names +
      " or a directory of IDX files or of pictures (CLASS/*, or train/CLASS/*), or a .rec");
}

}  // namespace ringlet::data
