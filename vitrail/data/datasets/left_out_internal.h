// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are found where images are expected, and that are not read.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

// Numbers of files by what they are, such as ".heic".
using LeftOut = std::map<std::string, int64_t>;

// What a file is by its name: ".heic" for "a/b.HEIC", or "without an extension".
std::string kind_of_file(std::string_view path);

// "16 files left out: 8 .heic, 8 .svg": files by their kind, the most frequent first.  Empty for no files.
std::string left_out_text(const std::vector<std::string>& paths);
std::string left_out_kinds(const LeftOut& files);

// Whether the extension is that of an image, video or scan format that is not read: a folder of such files is a class
// whose images are missing, not a folder of something else.
bool is_unsupported_image(std::string_view path);

// Whether a file or folder of this name is never an image or a class: what is hidden (".git", "._photo.jpg"), and what
// systems add to folders and archives ("__MACOSX", "Thumbs.db").
bool is_ignored_name(std::string_view name);

// Whether a name in the path, which has '/' as separator, is such a name.
bool is_ignored_path(std::string_view path);

}  // namespace vitrail::data
