// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/patchify.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/rowwise/patchify.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {

Tensor patchify(const Tensor& image, int64_t patch_height, int64_t patch_width) {
  if (patch_height < 1 || patch_width < 1) {
    throw Error("patchify", "a patch of at least 1×1", str(patch_height, "×", patch_width));
  }
  if (image.rank() != 4 || image.size(2) < patch_height || image.size(3) < patch_width) {
    throw Error("patchify", str("an image [B, C, H, W] of at least ", patch_height, "×", patch_width),
                image.shape().to_string());
  }
  const int64_t batch = image.size(0), channels = image.size(1);
  const int64_t grid_height = image.size(2) / patch_height, grid_width = image.size(3) / patch_width;
  const Shape shape{batch, grid_height * grid_width, channels * patch_height * patch_width};
  if (symbolic({&image})) {
    const Tensor result = symbolic_result(shape, image.dtype());
    record(OpKind::patchify, {contiguous(image)}, {result}, {.height = patch_height, .width = patch_width});
    return result;
  }
  if (image.dtype() == DType::f32 && !autograd::recording({image})) {
    const Tensor dense = image.contiguous();
    const Tensor result = Tensor::empty(shape);
    kernels::patchify(dense.data<float>(), batch, channels, image.size(2), image.size(3), patch_height, patch_width,
                      result.data<float>());
    return result;
  }
  // Views and a copy are differentiable, and accept any dtype.
  return image.narrow(2, 0, grid_height * patch_height)
      .narrow(3, 0, grid_width * patch_width)
      .contiguous()
      .view({batch, channels, grid_height, patch_height, grid_width, patch_width})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape(shape);
}

}  // namespace vitrail::ops
