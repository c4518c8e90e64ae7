// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/patchify.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/rowwise/patchify.h"
#include "vitrail/ops/operation.h"

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
  if (!symbolic({image}) && (image.dtype() != DType::f32 || autograd::recording({image}))) {
    // Views and a copy are differentiable, and accept any dtype.
    return image.narrow(2, 0, grid_height * patch_height)
        .narrow(3, 0, grid_width * patch_width)
        .contiguous()
        .view({batch, channels, grid_height, patch_height, grid_width, patch_width})
        .permute({0, 2, 4, 1, 3, 5})
        .reshape(shape);
  }
  return apply({.name = "patchify",
                .shape = shape,
                .kernel =
                    [=, height = image.size(2), width = image.size(3)](std::span<const View<const float>> in,
                                                                       std::span<const View<float>> out) {
                      kernels::patchify(in[0].data, batch, channels, height, width, patch_height, patch_width,
                                        out[0].data);
                    },
                .text = str("patchify ", patch_height, "×", patch_width),
                .plain_loop = true,
                .onnx =
                    [=](OnnxValues& onnx, const auto& in, const auto&) {
                      OnnxGraph& graph = onnx.graph();
                      const int64_t height = grid_height * patch_height, width = grid_width * patch_width;
                      std::string x = onnx.value_of(in[0]);
                      if (height != in[0].size(2) || width != in[0].size(3)) {
                        x = graph.slice(x, {2, 3}, {0, 0}, {height, width});
                      }
                      x = graph.reshape(x, {-1, channels, grid_height, patch_height, grid_width, patch_width});
                      return graph.reshape(graph.transpose(x, {0, 2, 4, 1, 3, 5}), {-1, shape[1], shape[2]});
                    }},
               {image});
}

}  // namespace vitrail::ops
