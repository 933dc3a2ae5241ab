// PictureDataset: pictures of any size, decoded when they are asked for, of which a model sees the
// middle. Where their bytes lie, a class on top says: in files of a folder (image_folder.cc), or in
// a `.rec` (record_dataset.cc).
//
// read() gives the middle of a picture (data/images/centre_crop.h); random-resized-crop cuts from
// the whole, or from what crop_from leaves of it. All are RGB: grey is repeated, alpha dropped, as
// Pillow's convert("RGB") does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image_folder.h"
#include "data/images/picture_reader.h"

namespace ringlet::data {

/// Threads that go through many pictures before a run.
int reading_threads();

/// The reader of this thread, for who looks at many pictures.
PictureReader& reader_of_this_thread();

/// What is wrong with each of `count` pictures, as far as `look`, which throws DataError, finds it;
/// empty where nothing is.
std::vector<std::string> find_defects(std::int64_t count, const StopRequest& stop,
                                      const std::function<void(std::int64_t)>& look);

/// Says of each picture with a defect, up to ten, and of all together, that it was left out of
/// `name`.
void note_left_out(const std::string& name, const std::vector<std::string>& defects,
                   std::vector<std::string>& notes);

/// Throws the first defect, and says how many pictures of `name` have one.
void refuse_defects(const std::string& name, const std::vector<std::string>& defects);

/// Indices of `size` samples, evenly spaced, a thousand at most: to test on where there is nothing
/// else.
std::vector<std::int64_t> test_sample(std::int64_t size);

/// "DIR: there is no FOLDER, so the test is on N of the training pictures ..."
std::string note_on_test_sample(const std::string& name, std::int64_t samples,
                                const std::string& lacking);

class PictureDataset : public Dataset {
 public:
  void read(std::int64_t index, std::span<std::uint8_t> out) const override;
  void read_varied(std::int64_t index, const Variation& variation,
                   std::span<std::uint8_t> out) const override;
  bool keeps_samples() const override { return crop_from_ == 0; }
  void keep(std::int64_t index, std::vector<std::uint8_t>& kept) const override;
  void vary_kept(std::span<const std::uint8_t> kept, const Variation& variation,
                 std::span<std::uint8_t> out) const override;

 protected:
  PictureDataset(const std::string& name, std::vector<std::string> target_names,
                 std::vector<std::int32_t> targets, const ImageFolderOptions& options);

  /// The whole picture, good until the reader's next. Throws DataError.
  virtual RgbxView load(std::int64_t index, PictureReader& reader) const = 0;

  std::vector<PixelStatistics> measure() const override;
  bool exif() const { return exif_; }
  /// Where a hash of what stands for the pixels begins: options count.
  std::uint64_t hash_of_options(std::uint64_t seed) const;

 private:
  int size_, crop_from_;
  bool exif_;
};

}  // namespace ringlet::data
