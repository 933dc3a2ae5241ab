// The pictures of a `.rec` as a data set (data/record_file.h, data/record_list.h). Labels are the
// classes, named by their numbers.
//
// To test on, val.rec or test.rec beside it is taken; else some of the training pictures, which a
// note says: how well a model knows those tells of learning, and nothing of others.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"
#include "data/image_folder.h"

namespace ringlet::data {

/// Whether `name` is a file whose name ends in .rec.
bool is_record_file(const std::string& name);

/// `options.image_size` 0: that of the first picture, where it is a square; else kUsualImageSize.
/// Throws DataError as list_records(), for a label of the test pictures that no training picture
/// has, and for pictures that are none by their first bytes; with `skip_broken` these are left out.
Splits load_records(const std::filesystem::path& file, const ImageFolderOptions& options);

}  // namespace ringlet::data
