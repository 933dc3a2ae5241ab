#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "app/cli/count_line.h"
#include "app/cli/error_exit.h"
#include "app/commands/embeddings_file.h"
#include "app/commands/predict.h"
#include "app/commands/predicted_image.h"
#include "base/data_error.h"
#include "base/files/atomic_file.h"
#include "base/stop_request.h"
#include "data/images/image.h"
#include "data/images/picture_reader.h"
#include "data/picture_list.h"
#include "train/loop/predictor.h"
#include "train/task/classification_logits.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// "3 .gif, 1 .heic": pictures that are not read.
std::string foreign_in(const data::PictureList& list) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [kind, count] : list.foreign) counts[kind.first] += count;
  std::vector<std::string> kinds;
  for (const auto& [ending, count] : counts) kinds.push_back(fmt::format("{} {}", count, ending));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

std::vector<fs::path> images_in(const fs::path& folder) {
  const data::PictureList list = data::list_pictures_below(folder);
  const std::string foreign = foreign_in(list), passed = data::passed_over(folder, list);
  if (list.files.empty() && foreign.empty()) {
    throw DataError(folder.string() + ": no image lies in this folder, nor in those below it (" +
                    data::kImageEndings + ")");
  }
  if (list.files.empty()) {
    throw DataError(fmt::format("{}: no image in this folder is read by its ending, but {}; {}",
                                folder.string(), foreign, data::kForeignRemedy));
  }
  if (!passed.empty()) print_warning(passed);
  if (!foreign.empty()) print_warning(data::passed_over_foreign(folder, foreign));
  std::vector<fs::path> files;
  for (const data::PictureFile& file : list.files) files.push_back(folder / file.path);
  std::sort(files.begin(), files.end());
  return files;
}

/// Folders replaced by the images in them.
std::vector<fs::path> expanded(const std::vector<fs::path>& named) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::path& path : named) {
    if (fs::is_directory(path, error)) {
      const std::vector<fs::path> inside = images_in(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else {
      files.push_back(path);
    }
  }
  return files;
}

PredictedImage prepare(const fs::path& file, const train::ModelInfo& info,
                       const PredictImages& request) {
  if (info.photographs) {
    data::PictureReader reader;
    const data::RgbxView picture = reader.load(file, info.exif);
    return {.file = file,
            .width = picture.width,
            .height = picture.height,
            .prepared =
                data::prepare_photograph(picture, info.height, request.invert, reader.has_turned()),
            .guesses = {}};
  }
  const data::ImageTarget target{info.channels, info.height, info.width,
                                 info.background.value_or(0)};
  const data::Image image = data::load_image(file);
  return {.file = file,
          .width = image.width,
          .height = image.height,
          .prepared = data::prepare_image(image, target, request.invert, request.stretch),
          .guesses = {}};
}

/// All images, in passes through the model: what is in memory is one pass.
class Passes {
 public:
  Passes(train::Predictor& predictor, const fs::path& model, const std::vector<fs::path>& files,
         const PredictImages& request)
      : predictor_(predictor),
        model_(model),
        request_(request),
        files_(files),
        line_(std::ssize(files_), "images", !can_renew_lines(STDOUT_FILENO)) {
    if (!embeds()) return;
    file_.emplace(request.embeddings, std::ssize(files), predictor.width());
  }

  /// The images of the next pass and what the model takes them for; none after the last.
  std::vector<PredictedImage> next() {
    std::vector<PredictedImage> images;
    while (next_ < files_.size() && std::ssize(images) < predictor_.batch()) {
      stop_if(request_.how.stop_requested);
      prepare_next(images);
      line_.show(static_cast<std::int64_t>(next_));
    }
    if (!images.empty()) guess(images);
    line_.clear();
    return images;
  }

  const std::vector<LeftOutImage>& left_out() const { return left_out_; }
  bool embeds() const { return !request_.embeddings.empty(); }
  /// Behind the last pass, where embeddings are written.
  void commit() { file_->commit(); }

 private:
  /// An image that cannot be read is left out; if it is the only one, its error is thrown.
  void prepare_next(std::vector<PredictedImage>& images) {
    const fs::path& file = files_[next_++];
    try {
      images.push_back(prepare(file, predictor_.info(), request_));
    } catch (const DataError& error) {
      if (files_.size() == 1) throw;
      line_.clear();
      print_warning(error.what());
      left_out_.push_back({file, error.what()});
    }
  }

  void guess(std::vector<PredictedImage>& images) {
    std::vector<std::uint8_t> pixels;
    for (const PredictedImage& image : images) {
      pixels.insert(pixels.end(), image.prepared.pixels.begin(), image.prepared.pixels.end());
    }
    const std::vector<float> logits = predictor_.logits(pixels);
    const auto outputs = static_cast<std::size_t>(predictor_.width());
    const std::int64_t broken = train::first_nonfinite(logits, static_cast<std::int64_t>(outputs));
    if (broken >= 0 && request_.how.nonfinite == train::NonFinite::refused) {
      throw FileError(fmt::format("{} gives {} a number that is not finite; its weights are broken",
                                  model_.string(),
                                  images[static_cast<std::size_t>(broken)].file.string()));
    }
    if (embeds()) return file_->write(logits);
    for (std::size_t i = 0; i < images.size(); ++i) {
      images[i].guesses =
          train::likeliest(std::span<const float>(logits).subspan(i * outputs, outputs),
                           static_cast<std::size_t>(request_.top));
    }
  }

  train::Predictor& predictor_;
  const fs::path& model_;
  const PredictImages& request_;
  const std::vector<fs::path>& files_;
  std::size_t next_ = 0;
  std::vector<LeftOutImage> left_out_;
  std::optional<EmbeddingsFile> file_;
  CountLine line_;
};

/// Asks for all files that --save-input may write, before the first is written.
void claim_inputs(const PredictImages& request, const std::vector<fs::path>& images,
                  const train::ModelInfo& info, Outputs& outputs) {
  require_writable_directory(request.save_input);
  InputNames names(request.save_input, info);
  for (const fs::path& image : images) outputs.writes("--save-input", names.next(image));
}

/// The files without those that were left out. Both are in the same order.
std::vector<fs::path> without(const std::vector<LeftOutImage>& left_out,
                              const std::vector<fs::path>& files) {
  std::vector<fs::path> good;
  auto next = left_out.begin();
  for (const fs::path& file : files) {
    if (next != left_out.end() && next->file == file) {
      ++next;
    } else {
      good.push_back(file);
    }
  }
  return good;
}

[[noreturn]] void fail_with_broken(std::size_t broken, std::size_t all) {
  throw DataError(fmt::format(
      "{} of {} images cannot be read, as the warnings say; mend or remove them", broken, all));
}

/// The file's beginning says how many rows it has. So where an image turned out to be broken, the
/// others are read once more, and there is no row of it.
void write_embeddings_of(train::Predictor& predictor, const fs::path& model,
                         const std::vector<fs::path>& all, const PredictImages& request) {
  std::vector<fs::path> files = all;
  while (true) {
    Passes passes(predictor, model, files, request);
    while (!passes.next().empty()) {
    }
    std::vector<fs::path> good = without(passes.left_out(), files);
    if (good.empty()) fail_with_broken(all.size(), all.size());
    if (good.size() == files.size()) {
      passes.commit();
      break;
    }
    files = std::move(good);
  }
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.string());
  write_names(request.embeddings, names);
  if (files.size() < all.size()) fail_with_broken(all.size() - files.size(), all.size());
}

}  // namespace

std::int64_t predict_images(Device& device, const fs::path& model, const train::ModelInfo& info,
                            bool assumed, const PredictImages& request, Outputs& outputs) {
  constexpr std::int64_t kLargestPass = 250;
  const std::vector<fs::path> files = expanded(request.files);
  const bool saves = !request.save_input.empty();
  require_name("--save-input", request.save_input);
  if (saves) claim_inputs(request, files, info, outputs);
  train::PredictorOptions how = request.how;
  how.batch = std::min(std::ssize(files), kLargestPass);
  train::Predictor predictor(device, model, info, how);
  if (!request.embeddings.empty()) {
    write_embeddings_of(predictor, model, files, request);
    return predictor.width();
  }
  Passes passes(predictor, model, files, request);
  ImagePrinter printer(model, info, assumed, request.json);
  InputNames names(request.save_input, info);
  for (auto images = passes.next(); !images.empty(); images = passes.next()) {
    for (const PredictedImage& image : images) {
      if (saves) save_input(names.next(image.file), info, image);
    }
    printer.print(images);
  }
  printer.finish(passes.left_out());
  if (passes.left_out().empty()) return predictor.width();
  fail_with_broken(passes.left_out().size(), files.size());
}

}  // namespace ringlet::app
