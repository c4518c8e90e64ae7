// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/item_files.h"

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const std::string> content_of_file(const fs::path& path) {
  return std::make_shared<const std::string>(read_text_file(path, image::kMaxFileBytes));
}

}  // namespace

ItemFile::ItemFile(const std::string& option, const fs::path& path) : option_(option), path_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    content_ = content_of_file(path);
    return;
  }
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const bool fits = image::is_image_path(entry->path()) || entry->path().extension() == ".json";
    if (fits) by_stem_[entry->path().stem().string()].push_back(entry->path());
  }
  if (error) throw Error(path.string(), "a folder that can be read", error.message());
}

const fs::path& ItemFile::path_of(const std::string& image) const {
  if (content_) return path_;
  const std::string stem = fs::path(image).stem().string();
  const auto found = by_stem_.find(stem);
  const size_t files = found == by_stem_.end() ? 0 : found->second.size();
  if (files != 1)
    throw Error(option_, str("one file ", stem, ".* in ", path_.string()), files == 0 ? "none" : str(files));
  return found->second.front();
}

std::shared_ptr<const std::string> ItemFile::content_of(const std::string& image) const {
  return content_ ? content_ : content_of_file(path_of(image));
}

}  // namespace vitrail::app
