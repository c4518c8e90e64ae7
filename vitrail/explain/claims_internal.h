// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts of a model that the learning page states.  A claim is a row: the page has its sentence as the text "claim.ID",
// with the values in their places, and tests/explain/claims_test.cpp asserts it.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/explain/forward_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::explain {

// What claims are measured on.
struct ClaimContext {
  const models::ModelConfig& config;
  const models::VisionTransformer& model;
  const Forward& forward;
  // Members of the manifest, or null: for a model without a classifier, and without texts.
  nlohmann::ordered_json attributions, gradients, texts = {};
};

struct Claim {
  const char* id;
  // The values of the sentence; null if the claim is not about this model.
  nlohmann::ordered_json (*measure)(const ClaimContext& context);
};
const std::vector<Claim>& claims();

// [{"id": …, "values": {…}}, …] of those that are about this model.
nlohmann::ordered_json measured_claims(const ClaimContext& context);

}  // namespace vitrail::explain
