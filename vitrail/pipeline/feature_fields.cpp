// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/feature_fields.h"

namespace vitrail::pipeline {

void describe_features(Fields& fields, infer::FeatureOptions& options) {
  using infer::Tokens;
  fields.choice<Tokens>(
      {"tokens", "Tokens: pooled (the input of the head; the embedding of a dual model), cls, patch or all"},
      options.tokens,
      {{"pooled", Tokens::pooled}, {"cls", Tokens::cls}, {"patch", Tokens::grid}, {"all", Tokens::all}});
  fields.integers({"layers",
                   "Index of the block whose output is written; negative counts from the end.  Several, as -1,-4, are "
                   "computed in one pass",
                   "layer"},
                  options.layers);
  fields.boolean({"final_norm", "Skip the final norm", "no-norm"}, options.final_norm);
  fields.boolean({"normalized", "L2-normalise each feature vector", "normalize"}, options.l2_normalize);
}

}  // namespace vitrail::pipeline
