// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/served_model_internal.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace vitrail::serve {

ServedModel::ServedModel(const ModelSource& source, const ModelOptions& options) : name_(source.name) {
  const models::OpenedModel opened = models::open_model(source.path, options.load);
  if (opened.config.text) {
    try {
      dual_ = std::make_unique<DualModel>(opened, options);
    } catch (const Error& error) {
      warn(name_ + " serves images only: " + error.what());
    }
  }
  if (!dual_) images_ = std::make_unique<Model>(opened, options);
  const auto& vit = images().config().vit;
  const Tensor blank = Tensor::zeros({1, vit.in_chans, vit.img_size[0], vit.img_size[1]});
  static_cast<void>(images().session().run(blank, classifies() ? infer::Request{} : images().request_of({})));
}

}  // namespace vitrail::serve
