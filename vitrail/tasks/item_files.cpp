// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/item_files.h"

#include <algorithm>

#include "vitrail/base/base64_internal.h"

namespace vitrail::tasks {

ItemFiles::ItemFiles(const Task& task, RequestOptions& options) {
  for (const TaskFile& file : task.input_files) {
    for (std::string& content : options.texts(file.name)) {
      if (content.starts_with("data:")) content = from_data_uri(content, file.name);
      contents_[file.name].push_back(std::make_shared<const std::string>(std::move(content)));
    }
  }
}

std::set<std::string> ItemFiles::names() const {
  std::set<std::string> names;
  for (const auto& [name, contents] : contents_) names.insert(name);
  return names;
}

FilesOfItem ItemFiles::of(size_t index, size_t images) const {
  FilesOfItem files;
  for (const auto& [name, contents] : contents_) {
    if (contents.size() != 1 && contents.size() != images)
      throw Error(name, str("one for all images, or ", images, ", one for each"), str(contents.size()));
    files[name] = contents[contents.size() == 1 ? 0 : index];
  }
  return files;
}

bool is_item_file(const std::string& option) {
  return std::ranges::any_of(tasks(), [&](const Task& task) {
    return std::ranges::find(task.input_files, option, &TaskFile::name) != task.input_files.end();
  });
}

}  // namespace vitrail::tasks
