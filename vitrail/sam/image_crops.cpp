// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/automatic.h"

namespace vitrail::sam {
namespace {

// The library's predictor and an image.
class ImageCrops : public CropPredictor {
 public:
  ImageCrops(const Predictor& predictor, const image::ImageView& image) : predictor_(predictor), image_(image) {}

  void begin(const PixelBox& crop) override {
    const uint8_t* first = image_.row(crop.y0) + crop.x0 * image_.channels();
    embedding_ = predictor_.embed({first, crop.x1 - crop.x0, crop.y1 - crop.y0, image_.format(), image_.stride()});
  }
  std::vector<Masks> predict(std::span<const Prompt> prompts) const override {
    return predictor_.predict(embedding_, prompts);
  }
  Tensor image_logits(const Tensor& mask, int64_t width, int64_t height) const override {
    return predictor_.image_logits(mask, width, height);
  }

 private:
  const Predictor& predictor_;
  const image::ImageView& image_;
  ImageEmbedding embedding_;
};

}  // namespace

std::vector<AutomaticMask> automatic_masks(const Predictor& predictor, const image::ImageView& image,
                                           const AutomaticOptions& options) {
  ImageCrops crops(predictor, image);
  return automatic_masks(crops, image.width(), image.height(), options);
}

}  // namespace vitrail::sam
