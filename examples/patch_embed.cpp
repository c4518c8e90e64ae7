// SPDX-License-Identifier: Apache-2.0
// From pixels to a sequence: PatchEmbed alone, on a random image (document 001).
//
// An image of 224 × 224 is cut into 14 × 14 patches of 16 × 16 pixels.  One convolution with kernel = stride = 16 does
// both at once, the cutting and the projection of each patch's 16 · 16 · 3 pixels to 768 numbers.
#include "vitrail/nn/patch_embed.h"

#include "examples/show.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"

int main() {
  using namespace vitrail;
  RandomParams params(0);  // parameters are drawn, not read from a file
  const nn::PatchEmbed layer({.img_size = {224, 224}, .patch_size = {16, 16}, .embed_dim = 768, .norm_eps = 1e-5},
                             ParamSource(params, "patch_embed"));
  std::printf("%s\n\n", layer.to_string().c_str());

  const Tensor image = Tensor::randn({1, 3, 224, 224}, 1);
  show::shape("image", image, {1, 3, 224, 224});

  // The library never prints; whoever wants to see the steps asks for a trace.
  Tensor tokens;
  {
    const nn::TraceScope scope([](const std::string& name, const Tensor& tensor) {
      if (name == "patch_embed.patches") show::shape("after the projection: a feature map", tensor, {1, 768, 14, 14});
      if (name == "patch_embed.tokens") show::shape("flattened: a sequence of patches", tensor, {1, 196, 768});
    });
    tokens = layer.forward(image);
  }
  show::shape("output", tokens, {1, 196, 768});
  show::values("its first numbers (each token was normalised)", tokens);

  // The model was made for one size; another is an error that names both.
  std::printf("\n");
  try {
    layer.forward(Tensor::zeros({1, 3, 225, 224}));
    show::check("an image of 225 × 224 is refused", false);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  try {
    nn::PatchEmbed({.img_size = {225, 225}}, ParamSource(params));
    show::check("an image size that the patch does not divide is refused", false);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  return show::mismatches;
}
