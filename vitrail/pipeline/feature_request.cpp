// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/feature_request.h"

#include "vitrail/base/error.h"

namespace vitrail::pipeline {
namespace {

infer::Tokens tokens_from_name(const std::string& name) {
  if (name == "pooled") return infer::Tokens::pooled;
  if (name == "cls") return infer::Tokens::cls;
  if (name == "patch") return infer::Tokens::grid;
  if (name == "all") return infer::Tokens::all;
  throw Error("tokens", "pooled, cls, patch or all", "'" + name + "'");
}

}  // namespace

infer::Request feature_request(const Model& model, const FeatureOptions& options) {
  const infer::Tokens tokens = tokens_from_name(options.tokens);
  if (options.layers.empty()) throw Error("layer", "at least one index of a block", "none");
  if (options.layers.size() == 1) {
    return model.request_of({.tokens = tokens, .layer = options.layers.front(), .final_norm = options.final_norm});
  }
  return {.output = infer::Output::features,
          .tokens = tokens,
          .layer = options.layers.front(),
          .normalize = options.final_norm,
          .layers = options.layers};
}

}  // namespace vitrail::pipeline
