// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that come with the images of a command, such as their trimaps.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vitrail::app {

// The value of an option: a file for all images, or a folder with one for each, of the image's name: an image, or JSON.
class ItemFile {
 public:
  // Throws Error for a file or folder that cannot be read.
  ItemFile(const std::string& option, const std::filesystem::path& path);
  // Throws Error if the folder has none for the image, or several.
  const std::filesystem::path& path_of(const std::string& image) const;
  std::shared_ptr<const std::string> content_of(const std::string& image) const;

 private:
  std::string option_;
  std::filesystem::path path_;
  std::shared_ptr<const std::string> content_;  // the content of a file for all images
  std::map<std::string, std::vector<std::filesystem::path>> by_stem_;
};

}  // namespace vitrail::app
