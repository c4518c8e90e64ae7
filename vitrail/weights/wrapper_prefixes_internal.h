// SPDX-License-Identifier: Apache-2.0
#pragma once
// Name prefixes that training code adds to a model's tensors.
#include <string>
#include <vector>

namespace vitrail::weights {

// Removes, repeatedly, "module." (DistributedDataParallel), "_orig_mod." (torch.compile) and "model." (Lightning) if
// all names have it.  Removes "backbone." if some names have it (DINO's and DINOv2's training checkpoints also contain
// projection heads), unless two names would become equal.
void strip_wrapper_prefixes(std::vector<std::string>& names);

}  // namespace vitrail::weights
