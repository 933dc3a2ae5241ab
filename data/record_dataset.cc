#include "data/record_dataset.h"

#include <algorithm>
#include <utility>

#include "base/data_error.h"
#include "base/hash.h"
#include "data/fingerprint.h"
#include "data/picture_dataset.h"
#include "data/picture_spec.h"
#include "data/record_list.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

/// The file and which of its records.
struct RecordSource {
  std::shared_ptr<const RecordFile> file;
  RecordList list;
};

RgbxView decode(const RecordFile& file, std::uint64_t offset, PictureReader& reader, bool exif) {
  thread_local std::vector<std::uint8_t> bytes;
  file.picture(offset, bytes);
  return reader.decode(
      bytes, file.file().name() + ": the picture at byte " + std::to_string(offset), exif);
}

class RecordDataset final : public PictureDataset {
 public:
  RecordDataset(const std::string& name, const RecordSource& source, std::int64_t identities,
                const ImageFolderOptions& options)
      : PictureDataset(name, identity_names(identities), source.list.labels, options),
        file_(source.file),
        offsets_(source.list.offsets),
        strange_(source.list.strange),
        first_strange_(source.list.first_strange) {}

  void look_at_samples() const override {
    if (strange_ == 0) return;
    throw DataError(name() + ": the record at byte " + std::to_string(first_strange_) +
                    " holds no picture by its first bytes; so do " + std::to_string(strange_) +
                    " of " + std::to_string(size()) +
                    " records, and --skip-broken leaves them out");
  }

 protected:
  /// Of the file's fingerprint and of which records.
  PixelContent survey(std::uint64_t seed) const override {
    return {hash_bytes(offsets_.data(), offsets_.size() * sizeof offsets_[0],
                       hash_of_options(seed) ^ fingerprint_of(file_->file().name(), kOfDataSet)),
            {}};
  }
  RgbxView load(std::int64_t index, PictureReader& reader) const override {
    return decode(*file_, offsets_[static_cast<std::size_t>(index)], reader, exif());
  }

 private:
  std::shared_ptr<const RecordFile> file_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t strange_, first_strange_;
};

RecordSource open_source(const fs::path& file, const ImageFolderOptions& options, bool looked_at,
                         std::vector<std::string>& notes) {
  RecordSource source{std::make_shared<const RecordFile>(file), {}};
  source.list = list_records(*source.file, options.stop_requested);
  RecordList& list = source.list;
  for (std::string& note : notes_on(file.string(), list)) notes.push_back(std::move(note));
  if (!options.skip_broken || !looked_at) return source;
  const std::vector<std::string> defects =
      find_defects(std::ssize(list.offsets), options.stop_requested, [&](std::int64_t i) {
        PictureReader& reader = reader_of_this_thread();
        const LetGo let_go(reader);
        decode(*source.file, list.offsets[static_cast<std::size_t>(i)], reader, false);
      });
  note_left_out(file.string(), defects, notes);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < defects.size(); ++i) {
    if (!defects[i].empty()) continue;
    list.offsets[kept] = list.offsets[i];
    list.labels[kept++] = list.labels[i];
  }
  list.offsets.resize(kept);
  list.labels.resize(kept);
  list.strange = 0;
  return source;
}

/// Some of the pictures, evenly spaced.
RecordSource some_of(const RecordSource& source) {
  RecordSource some{source.file, {}};
  for (const std::int64_t i : test_sample(std::ssize(source.list.offsets))) {
    some.list.offsets.push_back(source.list.offsets[static_cast<std::size_t>(i)]);
    some.list.labels.push_back(source.list.labels[static_cast<std::size_t>(i)]);
  }
  return some;
}

/// The `.rec` that the model is tested on; empty: there is none.
fs::path test_file(const fs::path& file) {
  std::error_code error;
  for (const char* name : {"val.rec", "test.rec"}) {
    fs::path test = file.parent_path() / name;
    if (test != file && fs::is_regular_file(test, error)) return test;
  }
  return {};
}

/// Pixels of a side of the first picture, where it is a square.
int side_of(const RecordSource& source) {
  PictureReader& reader = reader_of_this_thread();
  const LetGo let_go(reader);
  try {
    const RgbxView picture = decode(*source.file, source.list.offsets[0], reader, false);
    const bool fits = picture.width == picture.height && picture.width <= kLargestImageSize;
    return fits ? picture.width : kUsualImageSize;
  } catch (const DataError&) {  // the run will say so, or leave it out
    return kUsualImageSize;
  }
}

}  // namespace

bool is_record_file(const std::string& name) {
  std::error_code error;
  return name.ends_with(".rec") && fs::is_regular_file(name, error);
}

Splits load_records(const fs::path& file, const ImageFolderOptions& options) {
  Splits splits;
  const fs::path other = test_file(file);
  const bool is_read = !options.only_test || other.empty();  // else its labels alone are
  const RecordSource train = open_source(file, options, is_read, splits.notes);
  const std::int64_t identities = train.list.identities;
  ImageFolderOptions of_train = options;
  if (of_train.image_size == 0) of_train.image_size = side_of(train);
  ImageFolderOptions of_test = of_train;
  of_test.crop_from = 0;
  splits.train = std::make_shared<const RecordDataset>(file.string(), train, identities, of_train);
  if (other.empty()) {
    const RecordSource some = some_of(train);
    splits.notes.push_back(note_on_test_sample(file.string(), std::ssize(some.list.offsets),
                                               "val.rec or test.rec beside it"));
    splits.test = std::make_shared<const RecordDataset>(file.string(), some, identities, of_test);
    return splits;
  }
  const RecordSource test = open_source(other, of_test, true, splits.notes);
  if (test.list.identities > identities) {
    throw DataError(other.string() + ": it has the label " +
                    std::to_string(test.list.identities - 1) + ", and those of " + file.string() +
                    " end at " + std::to_string(identities - 1) +
                    "; test on pictures of the same identities");
  }
  splits.test = std::make_shared<const RecordDataset>(other.string(), test, identities, of_test);
  return splits;
}

}  // namespace ringlet::data
