#include "train/recipe/picture_spec.h"

#include <fmt/format.h>

#include "data/augment.h"

namespace ringlet::train {

std::vector<std::string> normalizations() { return {"data", "imagenet", "cifar-10", "symmetric"}; }

std::vector<Option<PictureSpec>> picture_options() {
  using Spec = PictureSpec;
  static const std::string share = fmt::format("{}", data::kUsualSplit);
  const NumberRange side = from(0).to(data::kLargestImageSize);
  return {
      option("normalize_by", &Spec::normalize_by,
             {.help = "whose mean and deviation of pixels: the training images' own (data), "
                      "ImageNet's, CIFAR-10's; symmetric: from -1 to 1",
              .choices = normalizations,
              .flag = "normalize",
              .off_word = "none",
              .off_key = "normalize"}),
      option(
          "normalize", &Spec::normalize,
          {.help = "only divide pixels by 255", .form = Switch::off, .since_first_states = true}),
      option("augment", &Spec::augment,
             {.help = "vary the training images, in each epoch otherwise",
              .choices = [] { return data::augment_names(); },
              .for_photographs = "crop-flip"}),
      option<Spec>("image_size", &Spec::image_size,
                   {.help = "pixels of a side that a model sees of photographs in a folder",
                    .range = side,
                    .default_in_words = "by the photographs",
                    .open_at_zero = true,
                    .of_photographs = true}),
      option<Spec>("crop_from", &Spec::crop_from,
                   {.help = "random-resized-crop cuts from photographs whose shorter side has at "
                            "most these pixels; larger ones are made smaller first",
                    .range = side,
                    .default_in_words = "the whole photograph",
                    .open_at_zero = true,
                    .of_photographs = true,
                    .only = {.key = "augment",
                             .values = {"random-resized-crop"},
                             .refusal = "is what --augment random-resized-crop cuts from; leave it "
                                        "out"}}),
      option<Spec>(
          "split", &Spec::split,
          {.help = "the share of a folder's photographs that is tested on, class by class, "
                   "where no folder is there to test on",
           .range = above(0).below(1).on_hosts(),
           .default_in_words = share.c_str(),
           .open_at_zero = true,
           .of_photographs = true}),
      option<Spec>("exif", &Spec::exif,
                   {.help = "take the JPEGs of a folder as they are stored, not as their cameras "
                            "were held",
                    .form = Switch::off,
                    .of_photographs = true}),
  };
}

}  // namespace ringlet::train
