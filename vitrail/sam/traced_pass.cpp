// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/traced_pass.h"

#include "vitrail/ops/elementwise.h"

namespace vitrail::sam {

models::SamMasks traced_pass(const models::Sam& sam, const Tensor& images, const Tensor& coordinates,
                             const std::vector<models::SamPoint>& kinds) {
  const models::SamImage image = sam.encode(images);
  if (!sam.config().has_decoder) return {};
  const Tensor tokens = sam.mask_decoder().tokens(sam.prompt_encoder().points(coordinates, kinds));
  return sam.mask_decoder().forward(ops::add(image.embedding, sam.prompt_encoder().no_mask()),
                                    sam.prompt_encoder().grid_positions(), tokens, image.features);
}

}  // namespace vitrail::sam
