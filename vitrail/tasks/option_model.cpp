// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/option_model.h"

namespace vitrail::tasks {

std::shared_ptr<const LoadedModel> open_option_model(const std::string& option, const std::string& path,
                                                     const OpenOptions& options) {
  try {
    return open_model(path, options);
  } catch (const Error& error) {
    throw Error(option, "a model that can be opened", error.what());
  }
}

EncodingPointer encoding_by(const LoadedModel& model, const Item& item) {
  return item.encode ? item.encode(model) : model.encode(item.photo);
}

}  // namespace vitrail::tasks
