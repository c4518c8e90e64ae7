// SPDX-License-Identifier: Apache-2.0
#pragma once
// inspect --trace and --slice: the values of a model's parameters and of its forward pass.
#include <string>
#include <vector>

#include "apps/vitrail/output/value_listing.h"
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

struct ValueOptions {
  std::string trace;  // an image, "random", or empty: no forward pass
  std::vector<std::string> slices;
  int64_t batch = 1;
};

// A model as `inspect` shows it.  Without weights, its values are random.
struct InspectedModel {
  std::string source;  // for errors
  models::ModelConfig config;
  std::optional<models::OpenedModel> opened;  // none: an architecture or a config.json

  models::VisionTransformer build(Device device) const;
};

// Offers parameters under their native names, and the tensors of the file (may be null) under their own.
void offer_weights(const nn::Module& model, const weights::Checkpoint* checkpoint, ValueListing& listing);

// What names of slices may be, for the error: with a forward pass or without.
std::string expected_names(bool traced);

void print_values(const ValueOptions& options, const InspectedModel& inspected);

}  // namespace vitrail::app
