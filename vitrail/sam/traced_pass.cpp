// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/traced_pass.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::sam {

models::SamMasks traced_pass(const models::Sam& sam, const Tensor& images, const Tensor& coordinates,
                             const std::vector<models::SamPoint>& kinds) {
  const models::SamTrunk trunk = sam.image_encoder().trunk_outputs(images);
  const Tensor embedding = nn::traced(sam.image_encoder(), sam.image_encoder().neck(trunk.output));
  if (!sam.config().has_decoder) return {};
  const models::SamHqHead* const hq = sam.hq_head();
  const Tensor tokens = sam.mask_decoder().tokens(sam.prompt_encoder().points(coordinates, kinds));
  return sam.mask_decoder().forward(ops::add(embedding, sam.prompt_encoder().no_mask()),
                                    sam.prompt_encoder().grid_positions(), tokens,
                                    hq ? hq->features(embedding, trunk.intermediate) : Tensor());
}

}  // namespace vitrail::sam
