// What to do with a folder that holds pictures, but not as a run takes them (picture_parts.h).
#pragma once

#include <filesystem>
#include <string>

namespace ringlet::data {

/// One line that says what is there and where it should be; empty where neither pictures nor
/// folders for them are seen. `directory` is a folder that has_image_folders() does not know.
std::string folder_advice(const std::filesystem::path& directory);

}  // namespace ringlet::data
