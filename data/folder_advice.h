// What to do with a folder that holds pictures, but not as train/CLASS and val/CLASS.
#pragma once

#include <filesystem>
#include <string>

namespace ringlet::data {

/// One line that says what is there and where it should be; empty where neither pictures nor
/// folders for them are seen. `directory` is a folder without train, or without val and test.
std::string folder_advice(const std::filesystem::path& directory);

}  // namespace ringlet::data
