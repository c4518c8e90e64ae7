// SPDX-License-Identifier: Apache-2.0
#pragma once
// What attention heads and tokens of a block do in numbers, for one image.
#include <vector>

#include "vitrail/analysis/pixel_attribution.h"

namespace vitrail::analysis {

struct HeadStatistics {
  double entropy = 0;   // −Σ a ln a in nats: the mean over queries; between 0 and ln N
  double distance = 0;  // pixels between a patch and those that it attends to, weighted by attention: the mean over
                        // patches (Raghu et al. 2021, "Do vision transformers see like CNNs?", section 4)
  double special = 0;   // the share of attention on the tokens before the patches: the mean over patches
};

// weights [H, N, N]: the softmax weights of a block.  The N tokens are `prefix` special ones and the patches,
// row-major. Distances are between the centres of patches, of the attention to patches alone.  → H results.
std::vector<HeadStatistics> head_statistics(const Tensor& weights, int64_t prefix, const PatchGrid& patches);

// The Euclidean norm of each token: [N, D] → N values.  Tokens with a norm far above the others are artefacts (Darcet
// et al. 2024, "Vision transformers need registers").
std::vector<double> token_norms(const Tensor& tokens);

}  // namespace vitrail::analysis
