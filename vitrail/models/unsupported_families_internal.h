// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of image models that are known by name and not supported.
#include <string>

namespace vitrail::models {

// "a Swin Transformer, which is not supported", if `name` (a model_type of transformers or an architecture of timm) is
// of such a family; else empty.
std::string describe_unsupported_family(const std::string& name);

// Throws Error naming `where`, the family and what is supported, if `name` is of such a family.
void refuse_unsupported_family(const std::string& name, const std::string& where);

}  // namespace vitrail::models
