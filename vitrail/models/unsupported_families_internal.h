// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of image models that are known by name and not supported.
#include <string>

namespace vitrail::models {

// Throws Error naming `where`, the family and what is supported, if `name` (a model_type of transformers or an
// architecture of timm) is of such a family.
void refuse_unsupported_family(const std::string& name, const std::string& where);

}  // namespace vitrail::models
