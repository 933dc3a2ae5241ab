#include "data/convert.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <span>
#include <utility>

#include "base/data_error.h"
#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "data/images/image_format.h"
#include "data/pairs.h"
#include "data/picture_list.h"
#include "data/record_list.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;
using PictureBytes = std::span<const std::uint8_t>;

const char* ending_of(PictureBytes picture) {
  switch (image_format(picture)) {
    case ImageFormat::png:
      return ".png";
    case ImageFormat::jpeg:
      return ".jpg";
    case ImageFormat::bmp:
      return ".bmp";
    case ImageFormat::webp:
      return ".webp";
    case ImageFormat::pnm:
      return picture[1] == '5' ? ".pgm" : ".ppm";
    case ImageFormat::unknown:
      break;
  }
  return "";
}

std::string with_zeros(std::uint64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

std::size_t digits_of(std::uint64_t number) { return std::to_string(number).size(); }

/// A file of a folder that nobody sees yet.
void write_picture(const fs::path& file, PictureBytes picture) {
  constexpr mode_t kUsual = 0666;
  Descriptor descriptor = posix::open_own(file, O_WRONLY | O_CREAT | O_EXCL, kUsual);
  posix::write_all(descriptor.get(), file, picture.data(), picture.size());
  if (descriptor.close() != 0) throw posix::file_error("write", file, errno);
}

void count_picture(const ConvertOptions& options, std::int64_t done, std::int64_t total) {
  stop_if(options.stop_requested);
  if (options.progress) options.progress(done, total);
}

/// A `.rec` and its `.idx`, both aside.
class RecordWriter {
 public:
  explicit RecordWriter(const fs::path& records)
      : records_(records),
        index_path_(fs::path(records).replace_extension(".idx")),
        index_(index_path_) {}

  void add(std::span<const float> labels, PictureBytes picture) {
    const std::string payload = record_payload(labels, key_, picture);
    const std::string record =
        as_record({reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size()});
    index_.write(std::to_string(key_++) + "\t" + std::to_string(offset_) + "\n");
    records_.write(record);
    offset_ += record.size();
  }
  /// An index that was there goes first: a .rec is whole without one, and not with another's.
  void commit() {
    std::error_code error;
    fs::remove(index_path_, error);
    records_.commit();
    index_.commit();
  }

 private:
  AtomicFile records_;
  fs::path index_path_;
  AtomicFile index_;
  std::uint64_t key_ = 0, offset_ = 0;
};

/// Throws unless the file begins as a picture, and fits into a record.
void require_picture(const fs::path& path) {
  const StoredFile file(path);
  constexpr std::uint64_t kFirst = 8;
  std::vector<std::uint8_t> first(std::min(kFirst, file.bytes()));
  file.read(0, first);
  if (image_format(first) == ImageFormat::unknown) {
    throw DataError(
        path.string() +
        ": holds no picture by its first bytes; mend or remove it, nothing was written");
  }
  constexpr std::uint64_t kHeads = 1024;
  if (file.bytes() > kMostPartBytes - kHeads) {
    throw DataError(path.string() + ": has " + std::to_string(file.bytes()) +
                    " bytes, and a record holds 2^29; make the picture smaller");
  }
}

/// Throws for what no `.rec` can be made of.
void require_identities(const fs::path& folder, const PictureList& list) {
  std::error_code error;
  if (fs::is_directory(folder / "train", error)) {
    throw DataError(folder.string() +
                    ": there is train; name the folder in it that holds those of identities");
  }
  if (list.files.empty()) {
    throw DataError(
        folder.string() + ": there is no picture in a folder of an identity (IDENTITY/*)" +
        (list.foreign.empty() ? std::string("; name another folder")
                              : ", but " + foreign_pictures(list) + "; " + kForeignRemedy));
  }
  if (std::ssize(list.classes) > kMostRecordLabel) {
    throw DataError(
        folder.string() + ": there are " + std::to_string(list.classes.size()) +
        " identities, and a label of a .rec is an f32, which knows 2^24; keep the folder");
  }
}

}  // namespace

Converted convert_bin(const fs::path& bin, const fs::path& folder, const ConvertOptions& options) {
  const std::shared_ptr<const Pairs> pairs = open_pairs(bin);
  const std::int64_t pictures = 2 * pairs->size();
  const std::size_t digits = digits_of(static_cast<std::uint64_t>(pictures - 1));
  std::vector<std::uint8_t> kept;
  for (std::int64_t i = 0; i < pictures; ++i) {
    stop_if(options.stop_requested);
    if (image_format(pairs->picture(i, kept)) != ImageFormat::unknown) continue;
    throw DataError(
        pairs->picture_name(i) +
        ": holds no picture by its first bytes; mend or remove it, nothing was written");
  }
  AtomicDirectory aside(folder);
  std::vector<NamedPair> names(pairs->same().size());
  for (std::int64_t i = 0; i < pictures; ++i) {
    count_picture(options, i, pictures);
    const PictureBytes picture = pairs->picture(i, kept);
    const std::string name = with_zeros(static_cast<std::uint64_t>(i), digits) + ending_of(picture);
    write_picture(aside.path() / name, picture);
    NamedPair& pair = names[static_cast<std::size_t>(i / 2)];
    (i % 2 == 0 ? pair.first : pair.second) = name;
    pair.same = pairs->same()[static_cast<std::size_t>(i / 2)];
  }
  const std::string text = pairs_text(names);
  write_picture(aside.path() / "pairs.txt",
                {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  stop_if(options.stop_requested);
  aside.commit();
  return {.pictures = pictures,
          .pairs = pairs->size(),
          .same = std::ranges::count(pairs->same(), true)};
}

Converted convert_records(const fs::path& records, const fs::path& folder,
                          const ConvertOptions& options) {
  const RecordFile file(records);
  const RecordList list = list_records(file, options.stop_requested);
  if (list.strange > 0) {
    throw DataError(records.string() + ": the record at byte " +
                    std::to_string(list.first_strange) +
                    " holds no picture by its first bytes; nothing was written");
  }
  Converted result{.pictures = std::ssize(list.keys), .notes = notes_on(records.string(), list)};
  const std::size_t label_digits = digits_of(static_cast<std::uint64_t>(list.identities - 1));
  const std::size_t key_digits = digits_of(*std::ranges::max_element(list.keys));
  AtomicDirectory aside(folder);
  std::set<std::int32_t> made;
  std::vector<std::uint8_t> picture;
  for (std::size_t i = 0; i < list.keys.size(); ++i) {
    count_picture(options, static_cast<std::int64_t>(i), result.pictures);
    const fs::path of =
        aside.path() / with_zeros(static_cast<std::uint64_t>(list.labels[i]), label_digits);
    if (made.insert(list.labels[i]).second) fs::create_directory(of);
    file.picture(list.offsets[i], picture);
    write_picture(of / (with_zeros(list.keys[i], key_digits) + ending_of(picture)), picture);
  }
  stop_if(options.stop_requested);
  aside.commit();
  result.identities = std::ssize(made);
  return result;
}

Converted convert_folder(const fs::path& folder, const fs::path& records,
                         const ConvertOptions& options) {
  const PictureList list = list_pictures(folder);
  require_identities(folder, list);
  Converted result{.pictures = std::ssize(list.files)};
  const std::string passed = passed_over(folder, list);
  if (!passed.empty()) result.notes.push_back(passed);
  if (const std::string foreign = foreign_pictures(list); !foreign.empty()) {
    result.notes.push_back(folder.string() + ": passed over pictures that are not read by their " +
                           "endings: " + foreign + "; " + kForeignRemedy);
  }
  for (const PictureFile& picture : list.files) {
    stop_if(options.stop_requested);
    require_picture(folder / picture.path);
  }
  // Only identities with a picture have a number.
  std::vector<std::uint64_t> firsts;  // the key of each one's first picture
  std::vector<std::int32_t> labels;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    if (list.files[i].label != last) firsts.push_back(i + 1);
    last = list.files[i].label;
    labels.push_back(static_cast<std::int32_t>(firsts.size() - 1));
  }
  const std::uint64_t behind = list.files.size() + 1;
  const auto f32 = [](std::uint64_t number) { return static_cast<float>(number); };
  RecordWriter writer(records);
  writer.add(std::array{f32(behind), f32(behind + firsts.size())}, {});
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    count_picture(options, static_cast<std::int64_t>(i), result.pictures);
    const StoredFile file(folder / list.files[i].path);
    bytes.resize(file.bytes());
    file.read(0, bytes);
    writer.add(std::array{static_cast<float>(labels[i])}, bytes);
  }
  firsts.push_back(behind);
  for (std::size_t k = 0; k + 1 < firsts.size(); ++k) {
    writer.add(std::array{f32(firsts[k]), f32(firsts[k + 1])}, {});
  }
  stop_if(options.stop_requested);
  writer.commit();
  result.identities = std::ssize(firsts) - 1;
  return result;
}

std::string foreign_entry(const fs::path& folder) {
  const auto is_number = [](const std::string& name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  };
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path name = entry->path().filename();
    std::error_code unknown;
    const bool is_folder = entry->is_directory(unknown);
    if (name == "pairs.txt" && !is_folder) continue;
    if (!is_number(name.stem().string()) || is_folder != name.extension().empty())
      return name.string();
    if (!is_folder) continue;
    for (fs::directory_iterator file(entry->path(), unknown); !unknown && file != end;
         file.increment(unknown)) {
      if (!is_number(file->path().stem().string()) || file->is_directory(unknown)) {
        return (name / file->path().filename()).string();
      }
    }
  }
  return {};
}

}  // namespace ringlet::data
