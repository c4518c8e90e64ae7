// SPDX-License-Identifier: Apache-2.0
#pragma once
// Artefact tokens: patches without content that a model uses as memory, whose norms are far above the others' (Darcet
// et al. 2024, "Vision transformers need registers").
#include <optional>
#include <vector>

namespace vitrail::analysis {

struct ArtefactTokens {
  double threshold = 0;  // the norm where both groups are equally likely
  double share = 0;      // the fraction of the tokens that are above it
};

// norms: those of the patches of a block, as token_norms() gives them.  Their logarithms get a mixture of two normal
// distributions; the upper one is the artefacts.  None if the norms are not in two groups: the means are at
// most four times the larger deviation apart.  None also for fewer than two norms, and for one that is not finite or
// not above zero.
std::optional<ArtefactTokens> artefact_tokens(const std::vector<double>& norms);

}  // namespace vitrail::analysis
