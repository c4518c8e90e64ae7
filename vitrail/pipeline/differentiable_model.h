// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>

#include "vitrail/models/load.h"

namespace vitrail::pipeline {

// A classifier whose operations are recorded, in fp32, for gradients: a session packs its weights and records nothing.
class DifferentiableModel {
 public:
  explicit DifferentiableModel(models::OpenedModel opened) : opened_(std::move(opened)) {}

  // The first call reads the weights again.  Thread-safe.  Throws Error for a model without a classifier, and for int8
  // weights.
  const models::VisionTransformer& model() const;
  const models::OpenedModel& opened() const { return opened_; }

 private:
  models::OpenedModel opened_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const models::VisionTransformer> model_;  // null: no gradients were asked for
};

}  // namespace vitrail::pipeline
