// SPDX-License-Identifier: Apache-2.0
#pragma once
// How alike the blocks of a model are, and a second model beside it.
#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/explain.h"
#include "vitrail/explain/forward_internal.h"

namespace vitrail::explain {

// Adds explain.cka [L, L]: linear CKA between the blocks, over the patches of the image.  Returns false, and adds
// nothing, for fewer than 4 patches or more than are compared in a second or two.
bool add_block_similarities(const models::VisionTransformer& model, const Forward& forward, Arrays& arrays);

// The member `compared` of the manifest: the second model and its prediction.  Adds the attention of both last blocks,
// and CKA between the blocks of both if they have as many patches.
nlohmann::ordered_json add_comparison(const Model& first, const Forward& forward, const ComparedModel& second,
                                      const image::ImageView& photo, Arrays& arrays);

}  // namespace vitrail::explain
