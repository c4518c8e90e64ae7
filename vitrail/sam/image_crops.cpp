// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/sam/automatic.h"

namespace vitrail::sam {
namespace {

// The library's predictor and an image, whose embedding is known or empty.
class ImageCrops : public CropPredictor {
 public:
  ImageCrops(const Predictor& predictor, const image::ImageView& image, ImageEmbedding embedding)
      : predictor_(predictor), image_(image), embedding_(std::move(embedding)) {}

  void begin(const PixelBox& crop) override {
    const bool known = embedding_.values.defined() && crop == PixelBox{0, 0, image_.width(), image_.height()};
    if (known) return;  // the first crop is the image
    const uint8_t* first = image_.row(crop.y0) + crop.x0 * image_.channels();
    embedding_ = predictor_.embed({first, crop.x1 - crop.x0, crop.y1 - crop.y0, image_.format(), image_.stride()});
  }
  std::vector<Masks> predict(std::span<const Prompt> prompts) const override {
    return predictor_.predict(embedding_, prompts);
  }
  Tensor image_logits(const Tensor& mask, int64_t width, int64_t height) const override {
    return predictor_.image_logits(mask, width, height);
  }
  double pred_iou_thresh() const override { return predictor_.pred_iou_thresh(); }

 private:
  const Predictor& predictor_;
  const image::ImageView& image_;
  ImageEmbedding embedding_;
};

}  // namespace

std::vector<AutomaticMask> automatic_masks(const Predictor& predictor, const image::ImageView& image,
                                           const AutomaticOptions& options) {
  return automatic_masks(predictor, ImageEmbedding{}, image, options);
}

std::vector<AutomaticMask> automatic_masks(const Predictor& predictor, const ImageEmbedding& embedding,
                                           const image::ImageView& image, const AutomaticOptions& options) {
  const bool fits =
      !embedding.values.defined() || (embedding.width == image.width() && embedding.height == image.height());
  if (!fits) {
    throw Error("embedding", str("that of an image of ", image.width(), "×", image.height()),
                str(embedding.width, "×", embedding.height));
  }
  ImageCrops crops(predictor, image, embedding);
  return automatic_masks(crops, image.width(), image.height(), options);
}

}  // namespace vitrail::sam
