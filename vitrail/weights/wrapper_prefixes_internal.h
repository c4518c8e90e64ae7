// SPDX-License-Identifier: Apache-2.0
#pragma once
// Name prefixes that training code adds to a model's tensors.
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::weights {

// Removes, repeatedly, "module." (DistributedDataParallel), "_orig_mod." (torch.compile), "_fsdp_wrapped_module."
// (FullyShardedDataParallel), "model." (Lightning) and "backbone." if all names have it.
void strip_wrapper_prefixes(std::vector<std::string>& names);

// Without the names of wrappers around a model's parts, as "_orig_mod." in "blocks.0._orig_mod.norm1.weight": the
// above, "_checkpoint_wrapped_module." and, behind a number, "module.".
std::string without_inner_wrappers(std::string_view name);

// The same for all names, unless two would become equal.  Returns how many changed.
size_t strip_inner_wrappers(std::vector<std::string>& names);

}  // namespace vitrail::weights
