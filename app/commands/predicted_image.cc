#include "app/commands/predicted_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/commands/checkpoint.h"
#include "train/files/atomic_file.h"
#include "train/files/one_line.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

const std::string& class_of(const train::ModelInfo& info, const train::Guess& guess) {
  return info.classes[static_cast<std::size_t>(guess.index)];
}

/// For programs, in ASCII: a terminal may show it too. File names need not be UTF-8.
std::string to_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void save_inputs(const fs::path& folder, const train::ModelInfo& info,
                 const std::vector<PredictedImage>& images) {
  train::require_writable_directory(folder);
  std::map<std::string, int> uses;
  for (const PredictedImage& image : images) {
    const std::string stem = image.file.stem().string();
    const int use = ++uses[stem];
    const bool grey = info.channels == 1;
    std::string content =
        fmt::format("{}\n{} {}\n255\n", grey ? "P5" : "P6", info.width, info.height);
    const std::size_t plane = std::size_t(info.height) * std::size_t(info.width);
    for (std::size_t i = 0; i < plane; ++i) {
      for (int c = 0; c < info.channels; ++c) {
        content += static_cast<char>(image.prepared.pixels[std::size_t(c) * plane + i]);
      }
    }
    const std::string number = use == 1 ? "" : fmt::format("-{}", use);
    train::write_file_atomically(folder / (stem + number + (grey ? ".pgm" : ".ppm")), content);
  }
}

void print_text(const fs::path& model, const train::ModelInfo& info, bool assumed,
                const PredictedImages& images) {
  fmt::print("{}\n", model_in_words(model, info, assumed));
  std::size_t width = 0;
  for (const PredictedImage& image : images.read) {
    for (const train::Guess& guess : image.guesses) {
      width = std::max(width, train::on_one_line(class_of(info, guess)).size());
    }
  }
  for (const PredictedImage& image : images.read) {
    const std::vector<std::string>& steps = image.prepared.steps;
    fmt::print("\n{} ({} x {})\n  {}\n", train::on_one_line(image.file.string()), image.width,
               image.height,
               steps.empty() ? "taken as it is" : fmt::format("{}", fmt::join(steps, ", ")));
    for (const train::Guess& guess : image.guesses) {
      fmt::print("    {:<{}}  {:6.2f} %\n", train::on_one_line(class_of(info, guess)), width,
                 100 * guess.probability);
    }
  }
}

void print_json(const fs::path& model, const train::ModelInfo& info, bool assumed,
                const PredictedImages& images) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PredictedImage& image : images.read) {
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (const train::Guess& guess : image.guesses) {
      classes.push_back({{"class", class_of(info, guess)},
                         {"index", guess.index},
                         {"probability", guess.probability}});
    }
    list.push_back({{"file", image.file.string()},
                    {"width", image.width},
                    {"height", image.height},
                    {"inverted", image.prepared.inverted},
                    {"steps", image.prepared.steps},
                    {"classes", classes}});
  }
  nlohmann::ordered_json left_out = nlohmann::ordered_json::array();
  for (const LeftOutImage& image : images.left_out) {
    left_out.push_back({{"file", image.file.string()}, {"why", image.why}});
  }
  const nlohmann::ordered_json document{{"checkpoint", model.string()},
                                        {"model", info.model},
                                        {"assumed", assumed},
                                        {"images", list},
                                        {"left_out", left_out}};
  fmt::print("{}\n", to_text(document));
}

}  // namespace ringlet::app
