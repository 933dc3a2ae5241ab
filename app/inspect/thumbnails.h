// Small pictures of a folder, for its page.
#pragma once

#include <filesystem>

#include "app/inspect/document.h"
#include "app/inspect/folder_health.h"

namespace ringlet::app::inspect {

/// Those that are alike, two of each group, and six of each class; of many the first.
void add_thumbnails(const FolderHealth& health, const std::filesystem::path& folder,
                    Document& document);

}  // namespace ringlet::app::inspect
