#include "app/commands/predicted_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/commands/checkpoint.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

const std::string& class_of(const train::ModelInfo& info, const train::Guess& guess) {
  return info.output_names[static_cast<std::size_t>(guess.index)];
}

/// For programs, in ASCII: a terminal may show it too. File names need not be UTF-8. `depth`: of
/// the document around it.
std::string to_text(const nlohmann::ordered_json& part, int depth) {
  constexpr int kIndent = 2;
  const std::string margin = "\n" + std::string(static_cast<std::size_t>(kIndent * depth), ' ');
  std::string text;
  for (const char c :
       part.dump(kIndent, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    text += c == '\n' ? margin : std::string(1, c);
  }
  return text;
}

nlohmann::ordered_json as_json(const PredictedImage& image, const train::ModelInfo& info) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const train::Guess& guess : image.guesses) {
    classes.push_back({{"class", class_of(info, guess)},
                       {"index", guess.index},
                       {"probability", guess.probability}});
  }
  return {{"file", image.file.string()},   {"width", image.width},
          {"height", image.height},        {"inverted", image.prepared.inverted},
          {"steps", image.prepared.steps}, {"classes", classes}};
}

}  // namespace

InputNames::InputNames(fs::path folder, const train::ModelInfo& info)
    : folder_(std::move(folder)), extension_(info.channels == 1 ? ".pgm" : ".ppm") {}

fs::path InputNames::next(const fs::path& image) {
  const std::string stem = image.stem().string();
  std::string name;
  do {  // another picture may be called so
    const int use = ++uses_[stem];
    name = use == 1 ? stem : fmt::format("{}-{}", stem, use);
  } while (!taken_.insert(name).second);
  return folder_ / (name + extension_);
}

void save_input(const fs::path& file, const train::ModelInfo& info, const PredictedImage& image) {
  std::string content =
      fmt::format("{}\n{} {}\n255\n", info.channels == 1 ? "P5" : "P6", info.width, info.height);
  const std::size_t plane = std::size_t(info.height) * std::size_t(info.width);
  for (std::size_t i = 0; i < plane; ++i) {
    for (int c = 0; c < info.channels; ++c) {
      content += static_cast<char>(image.prepared.pixels[std::size_t(c) * plane + i]);
    }
  }
  write_file_atomically(file, content);
}

ImagePrinter::ImagePrinter(const fs::path& model, const train::ModelInfo& info, bool assumed,
                           bool json)
    : model_(model), info_(info), assumed_(assumed), json_(json) {}

void ImagePrinter::print(const std::vector<PredictedImage>& images) {
  begin();
  json_ ? print_json(images) : print_text(images);
  std::fflush(stdout);
}

/// JSON's list of images stays open.
void ImagePrinter::begin() {
  if (std::exchange(begun_, true)) return;
  if (!json_) return fmt::print("{}\n", model_in_words(model_, info_, assumed_));
  std::string head =
      to_text({{"checkpoint", model_.string()}, {"model", info_.model}, {"assumed", assumed_}}, 0);
  head.erase(head.rfind("\n}"));
  fmt::print("{},\n  \"images\": [", head);
}

void ImagePrinter::print_text(const std::vector<PredictedImage>& images) const {
  std::size_t width = 0;
  for (const PredictedImage& image : images) {
    for (const train::Guess& guess : image.guesses) {
      width = std::max(width, on_one_line(class_of(info_, guess)).size());
    }
  }
  for (const PredictedImage& image : images) {
    const std::vector<std::string>& steps = image.prepared.steps;
    fmt::print("\n{} ({} x {})\n  {}\n", on_one_line(image.file.string()), image.width,
               image.height,
               steps.empty() ? "taken as it is" : fmt::format("{}", fmt::join(steps, ", ")));
    for (const train::Guess& guess : image.guesses) {
      fmt::print("    {:<{}}  {:6.2f} %\n", on_one_line(class_of(info_, guess)), width,
                 100 * guess.probability);
    }
  }
}

void ImagePrinter::print_json(const std::vector<PredictedImage>& images) {
  for (const PredictedImage& image : images) {
    const char* comma = std::exchange(has_images_, true) ? "," : "";
    fmt::print("{}\n    {}", comma, to_text(as_json(image, info_), 2));
  }
}

void ImagePrinter::finish(const std::vector<LeftOutImage>& left_out) {
  begin();
  if (json_) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const LeftOutImage& image : left_out) {
      list.push_back({{"file", image.file.string()}, {"why", image.why}});
    }
    fmt::print("{}],\n  \"left_out\": {}\n}}\n", has_images_ ? "\n  " : "", to_text(list, 1));
  }
  std::fflush(stdout);
}

}  // namespace ringlet::app
