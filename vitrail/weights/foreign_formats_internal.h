// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files and folders of other programs, which users give as a model.
#include <filesystem>
#include <string>
#include <string_view>

namespace vitrail::weights {

// What the file is and what to do instead ("an ONNX graph; …"), by its first and last bytes or its name; empty if it is
// not known.
std::string foreign_file(std::string_view bytes, const std::string& name);

// What is in a folder without weights that vitrail looks for: weights under other names, or files of other programs;
// "none of them" if nothing is known.
std::string folder_content(const std::filesystem::path& folder);

}  // namespace vitrail::weights
