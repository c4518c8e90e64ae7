// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prefixes that training code puts before the names of a model's tensors.
#include <string>
#include <vector>

namespace vitrail::weights {

// Takes off, repeatedly, "module." (DistributedDataParallel), "_orig_mod." (torch.compile) and "model." (Lightning)
// where every name begins so; and "backbone." where some name does (DINO's and DINOv2's training checkpoints have their
// projection heads beside it), unless two names would become one.
void strip_wrapper_prefixes(std::vector<std::string>& names);

}  // namespace vitrail::weights
