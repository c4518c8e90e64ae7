// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/families/classifying_models.h"

#include "apps/vitrail/families/model_options.h"
#include "vitrail/base/error.h"
#include "vitrail/tasks/images/hiera_model.h"

namespace vitrail::app {

bool is_vision_transformer(const ModelOptions& options) {
  try {
    return !models::is_hiera(models::ModelFiles(options.path()));
  } catch (const Error&) {
    return true;
  }
}

std::shared_ptr<const tasks::ClassifyingModel> open_classifying_model(const ModelOptions& options,
                                                                      const GlobalOptions& global,
                                                                      const std::string& labels) {
  refuse_model_options(options, "Hiera");
  vitrail::ModelOptions session = session_options_of(options, global);
  session.labels = labels;
  return std::make_shared<const tasks::HieraModel>(models::ModelFiles(options.path()),
                                                   tasks::OpenOptions{.model = session});
}

ImageRun passes_of(const tasks::ClassifyingModel& model, const infer::Request& request) {
  return {.passes = {request},
          .input_of = [&](const image::Image& photo) { return model.input_of(photo); },
          .run = [&](const Tensor& inputs, const infer::Request& pass) { return model.run(inputs, pass); }};
}

}  // namespace vitrail::app
