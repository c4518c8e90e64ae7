// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are found where images are expected, and that are not read.
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

// "16 files left out: 8 .heic, 8 .svg": files by their extension in lower case, the most frequent first.  Empty for no
// files.
std::string left_out_text(const std::vector<std::string>& paths);

// Whether the extension is that of an image, video or scan format that is not read: a folder of such files is a class
// whose images are missing, not a folder of something else.
bool is_unsupported_image(std::string_view path);

// Whether a file or folder of this name is never an image or a class: what is hidden (".git", "._photo.jpg"), and what
// systems add to folders and archives ("__MACOSX", "Thumbs.db").
bool is_ignored_name(std::string_view name);

}  // namespace vitrail::data
