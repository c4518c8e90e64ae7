// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files that come with the images of a request: Task::input_files, as options of the request.
#include "vitrail/tasks/task.h"

namespace vitrail::tasks {

// Their contents as bytes or data URIs: an option that is given once holds for all images, one that is repeated has a
// file for each, in their order.
class ItemFiles {
 public:
  // Takes the options.  Throws Error for a malformed data URI.
  ItemFiles(const Task& task, RequestOptions& options);
  std::set<std::string> names() const;  // the options that are given
  // The files of the image at `index` of `images`.  Throws Error for another number of files.
  FilesOfItem of(size_t index, size_t images) const;

 private:
  std::map<std::string, std::vector<std::shared_ptr<const std::string>>> contents_;
};

// Whether a task has an option of this name whose value is a file.
bool is_item_file(const std::string& option);

}  // namespace vitrail::tasks
