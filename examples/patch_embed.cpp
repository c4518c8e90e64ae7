// SPDX-License-Identifier: Apache-2.0
// From pixels to a sequence of tokens: timm's PatchEmbed on a random image.
//
// An image of 224 × 224 is split into 14 × 14 patches of 16 × 16 pixels.  One convolution with kernel = stride = 16
// both splits the image and projects the 16 · 16 · 3 values of each patch to 768.
#include "vitrail/nn/patch_embed.h"

#include "examples/show.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"

int main() {
  using namespace vitrail;
  RandomParams params(0);  // random parameters, instead of a weights file
  const nn::PatchEmbed layer({.img_size = {224, 224}, .patch_size = {16, 16}, .embed_dim = 768, .norm_eps = 1e-5},
                             ParamSource(params, "patch_embed"));
  std::printf("%s\n\n", layer.to_string().c_str());

  const Tensor image = Tensor::randn({1, 3, 224, 224}, 1);
  show::shape("image", image, {1, 3, 224, 224});

  // A trace gives access to intermediate tensors.
  Tensor tokens;
  {
    const nn::TraceScope scope([](const std::string& name, const Tensor& tensor) {
      if (name == "patch_embed.proj") show::shape("after the projection: a feature map", tensor, {1, 768, 14, 14});
      if (name == "patch_embed.transposed") show::shape("flattened: a sequence of patches", tensor, {1, 196, 768});
    });
    tokens = layer.forward(image);
  }
  show::shape("output", tokens, {1, 196, 768});
  show::values("its first values (each token is normalised)", tokens);

  // The layer has one input size.  Another size is an error that names both.
  std::printf("\n");
  try {
    layer.forward(Tensor::zeros({1, 3, 225, 224}));
    show::check("an image of 225 × 224 is an error", false);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  try {
    nn::PatchEmbed({.img_size = {225, 225}}, ParamSource(params));
    show::check("an image size that the patch size does not divide is an error", false);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  return show::mismatches;
}
