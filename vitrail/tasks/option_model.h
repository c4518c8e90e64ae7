// SPDX-License-Identifier: Apache-2.0
#pragma once
// Further models that options of a request name, such as a detector of the persons whose key points it wants.
#include <memory>
#include <string>

#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

// Opens the model at a path.  Throws Error naming the option.
std::shared_ptr<const LoadedModel> open_option_model(const std::string& option, const std::string& path,
                                                     const OpenOptions& options = {});

// The model of an option as one of a class.  needed: as Task::model, for the error about a model of another family.
template <class Model>
std::shared_ptr<const Model> fitting_model(const std::shared_ptr<const LoadedModel>& model, const std::string& option,
                                           const char* needed) {
  if (auto fitting = std::dynamic_pointer_cast<const Model>(model)) return fitting;
  throw Error(option, needed, model->family());
}

// The model that an option of a request names.
template <class Model>
std::shared_ptr<const Model> option_model(const Setting& setting, const std::string& option, const std::string& name,
                                          const char* needed) {
  const auto model = setting.open ? setting.open(option, name) : open_option_model(option, name);
  return fitting_model<Model>(model, option, needed);
}

// What such a model encodes of an image.
EncodingPointer encoding_by(const LoadedModel& model, const Item& item);

}  // namespace vitrail::tasks
