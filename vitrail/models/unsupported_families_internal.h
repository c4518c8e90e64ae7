// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of image models that are known by name and not supported.
#include <string>

#include "vitrail/base/embedded_file_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

// families/unsupported.json: an array of {"title", "names", "instead"}.  Names in timm and transformers begin with one
// of `names`, or contain it if it has "_" in front; the longest applies.
std::span<const EmbeddedFile> unsupported_family_files();

// "a Swin Transformer, which is not supported", if `name` (a model_type of transformers or an architecture of timm) is
// of such a family; else empty.
std::string describe_unsupported_family(const std::string& name);

// Throws Error naming `where`, the family and what is supported, if `name` is of such a family.
void refuse_unsupported_family(const std::string& name, const std::string& where);

// The name of a later generation of Segment Anything, whose models have other parts than the first: the model_type of
// config.json beside the weights, else as the tensors tell it.  Empty for the first generation.
std::string later_segment_anything(const weights::Checkpoint& checkpoint);

}  // namespace vitrail::models
