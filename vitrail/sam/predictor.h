// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictor: masks of an image for any number of prompts, with a checkpoint of Segment Anything (Kirillov et al., 2023;
// segment_anything/predictor.py) or SAM 2 (Ravi et al., 2024; sam2/sam2_image_predictor.py).  models::load_sam() says
// which files it reads.
//
//   const vitrail::sam::Predictor predictor("sam_vit_b.pth");
//   const auto embedding = predictor.embed(image);
//   const auto masks = predictor.predict(embedding, {.points = {{200, 150, 1}}});
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/image/image_view.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/sam/config.h"
#include "vitrail/sam/prompt.h"

namespace vitrail::models {
class Sam;
}

namespace vitrail::sam {

struct PredictorOptions {
  int threads = 0;  // 0: as many as the process may use
  // Of the linear layers of the image encoder and its attention.  In int8, patch embedding, neck and attention are
  // half. Prompts and masks are fp32.
  kernels::Precision precision = kernels::Precision::fp32;
  // How a file's model takes images.  Default: as config.json says, else as Segment Anything.
  std::optional<models::SamPreprocessing> preprocessing = {};
};

// What the image encoder gives for an image of `width` x `height` pixels.
struct ImageEmbedding {
  Tensor values = {};  // [C, h, w] f32
  int64_t width = 0, height = 0;
  // What the mask decoder reads besides, of the shapes feature_shapes(), f32: HQ-SAM's features, SAM 2's maps of
  // strides 4 and 8; empty for other models.
  std::vector<Tensor> features = {};
  // What the mask decoder reads for prompts without a mask, [h, w, C] f32: values and the embedding of no mask,
  // channels last; undefined: predict() computes it.
  Tensor decoder_input = {};
  // Query, key and value of the mask decoder's first cross-attention, which all prompts without a mask share,
  // [3, h·w, d] f32 with the width d of that attention; undefined: predict() computes them where they save work.  They
  // are used together with decoder_input.
  Tensor projections = {};
};

// The masks of a prompt: 3 or 1.
struct Masks {
  Tensor logits = {};           // [masks, h, w] f32, of the padded square frame; positive in the object
  std::vector<float> iou = {};  // the predicted intersection over union of each mask; may exceed 1, not of SAM 2
  std::optional<float> object_score = {};  // SAM 2 alone gives it: the logit of an object being at the prompt
};

// Const functions are thread-safe.
// The predicted IoU above which the reference keeps an automatic mask (automatic_mask_generator.py), and that of SAM 2.
constexpr double kPredIouThresh = 0.88, kPredIouThresh2 = 0.8;

class Predictor {
 public:
  // Throws Error for a malformed file.
  explicit Predictor(const models::ModelFiles& files, const PredictorOptions& options = {});
  // Takes a model in memory.  Errors name `where`.
  explicit Predictor(models::Sam sam, const PredictorOptions& options = {}, const std::string& where = "model");
  ~Predictor();

  // The image is resized to the long side of the model's input, as Pillow's BILINEAR, and padded on the right and
  // below; for SAM 2, to a square; for MedSAM, to a square by cubic splines.  Grey becomes RGB, alpha is dropped.
  // Throws Error for an image whose short side would be resized to nothing.
  ImageEmbedding embed(const image::ImageView& image) const;

  // A single mask of SAM 2 is the best of three where mask 0 is not stable (models::SamStability).
  // Throws Error for a prompt that check_prompt() refuses, and for an embedding of another model.
  Masks predict(const ImageEmbedding& embedding, const Prompt& prompt) const;
  std::vector<Masks> predict(const ImageEmbedding& embedding, std::span<const Prompt> prompts) const;

  // The logits [height, width] of one mask [h, w] at the image's size: bilinear to the padded frame, cropped, and
  // bilinear to the image.  For SAM 2, bilinear to the image at once.  For MedSAM the probabilities are enlarged to the
  // image: the logits may be infinite.
  Tensor image_logits(const Tensor& mask, int64_t width, int64_t height) const;

  int64_t image_size() const;                 // the sides of the model's input
  int64_t mask_size() const;                  // the sides of masks: h = w
  int64_t multimask_count() const;            // the masks of a prompt with multimask: 3
  Shape embedding_shape() const;              // [C, h, w]
  bool has_decoder() const;                   // false: an image encoder alone, with which predict() throws Error
  bool high_quality() const;                  // HQ-SAM
  bool second_generation() const;             // SAM 2
  double pred_iou_thresh() const;             // AutomaticOptions::pred_iou_thresh of the reference's generator
  std::vector<Shape> feature_shapes() const;  // Those of ImageEmbedding::features.

 private:
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace vitrail::sam
