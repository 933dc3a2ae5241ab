// The files below a folder of pictures, and what was passed over there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::data {

struct PictureFile {
  std::string path;  ///< below the split's folder: "dress/a.jpg"
  std::uint64_t bytes = 0;
  std::int32_t label = 0;
};

struct PictureList {
  std::vector<std::string> classes;  ///< by code point
  std::vector<PictureFile> files;    ///< by class, folder and name, by code point
  std::vector<std::string> passed;   ///< hidden, or no picture; some of them
  std::int64_t passed_count = 0;
  std::vector<std::string> stray;  ///< pictures beside the folders of classes; some of them
  std::int64_t stray_count = 0;
  /// Pictures with an ending that is not read: how many, by ending and class.
  std::map<std::pair<std::string, std::string>, std::int64_t> foreign;
  std::vector<std::string> foreign_files;  ///< the first hundred of these
};

/// Lists `folder`, which holds a folder for each class. Throws DataError where it cannot.
PictureList list_pictures(const std::filesystem::path& folder);

/// Lists all pictures of a folder and of those below it. Throws DataError where it cannot.
PictureList list_pictures_below(const std::filesystem::path& folder);

/// "DIR/train: passed over 3 files that are hidden or no pictures: .DS_Store, a.txt, b.txt"; empty
/// where there are none.
std::string passed_over(const std::filesystem::path& folder, const PictureList& list);

/// "DIR: passed over 2 pictures that lie beside the folders of classes: a.png, b.png; ..."; empty
/// where there are none.
std::string stray_pictures(const std::filesystem::path& folder, const PictureList& list);

/// "3 .gif in cat, 1 .heic in dog"; empty where there are none. `of_class`: of that class alone.
std::string foreign_pictures(const PictureList& list, const std::string& of_class = "");

/// "DIR: passed over pictures that are not read by their endings: 3 .gif; ..."
std::string passed_over_foreign(const std::filesystem::path& folder, const std::string& foreign);

/// The endings of what is read (has_image_name()), for messages.
inline constexpr const char* kImageEndings =
    ".png, .jpg, .jpeg, .jfif, .jpe, .webp, .bmp, .pgm, .ppm, .pnm";

/// What to do with other pictures.
inline constexpr const char* kForeignRemedy = "save them as PNG or JPEG";

}  // namespace ringlet::data
