// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/served_model_internal.h"

#include <atomic>

#include "vitrail/base/error.h"
#include "vitrail/base/file_content_internal.h"

namespace vitrail::serve {
namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> numbers{0};
  return ++numbers;
}

}  // namespace

ServedModel::ServedModel(const ModelSource& source, const ModelOptions& options)
    : name_(source.name), number_(next_number()) {
  const MappedFileGroup::Scope opening(files_);
  loaded_ = tasks::open_model(source.path, {.model = options, .images_alone = name_});
  loaded_->warm_up();
  remember_contents();
}

bool ServedModel::has_changed_files() const {
  try {
    check_files();
    return false;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace vitrail::serve
