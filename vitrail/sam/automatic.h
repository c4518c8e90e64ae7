// SPDX-License-Identifier: Apache-2.0
#pragma once
// Automatic masks: everything in an image, from a grid of points (Kirillov et al., 2023;
// segment_anything/automatic_mask_generator.py).
//
//   const vitrail::sam::Predictor predictor("sam_vit_b.pth");
//   for (const auto& mask : vitrail::sam::automatic_masks(predictor, image, {.points_per_side = 16})) use(mask.rle);
#include <array>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "vitrail/image/image_view.h"
#include "vitrail/sam/crops.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/sam/rle.h"

namespace vitrail {
class Fields;
}

namespace vitrail::sam {

// The parameters of the reference, under its names and with its defaults.
struct AutomaticOptions {
  int64_t points_per_side = 32;
  int64_t points_per_batch = 64;
  // Masks of a smaller predicted IoU are dropped; 0: none.  Unset: the model's, Predictor::pred_iou_thresh().
  std::optional<double> pred_iou_thresh = {};
  double stability_score_thresh = 0.95;  // masks of a smaller stability_score() are dropped; 0: none
  double stability_score_offset = 1;
  double box_nms_thresh = 0.7;
  int64_t crop_n_layers = 0;  // layer i has 2^i × 2^i crops
  double crop_nms_thresh = 0.7;
  double crop_overlap_ratio = 512.0 / 1500;
  int64_t crop_n_points_downscale_factor = 1;  // layer i has points_per_side / factor^i points per side
  // The points of each layer, from (0, 0) to (1, 1), instead of points_per_side.
  std::vector<std::vector<std::array<double, 2>>> point_grids = {};
  int64_t min_mask_region_area = 0;  // smaller holes are filled, smaller islands removed; 0: none

  // Masks of another area in pixels are left out of the result.  The reference has no such parameters.
  int64_t min_area = 0;
  int64_t max_area = std::numeric_limits<int64_t>::max();

  // Called at the beginning and after each batch, with the number of points of all crops that are done and of all.
  std::function<void(int64_t done, int64_t total)> progress = {};
};

// All but point_grids and progress.
void describe_automatic(Fields& fields, AutomaticOptions& options);

struct AutomaticMask {
  Rle rle = {};
  PixelBox box = {};  // with column x1 and row y1
  float predicted_iou = 0;
  float stability_score = 0;
  std::array<double, 2> point = {};  // in pixels of the image
  PixelBox crop = {};                // without column x1 and row y1
};

// What automatic masks need of a model.
class CropPredictor {
 public:
  virtual ~CropPredictor() = default;
  // The crop that the following calls mean.
  virtual void begin(const PixelBox& crop) = 0;
  // Masks of points, in pixels of the crop.
  virtual std::vector<Masks> predict(std::span<const Prompt> prompts) const = 0;
  // Logits [height, width] of a mask at the size of the crop.
  virtual Tensor image_logits(const Tensor& mask, int64_t width, int64_t height) const = 0;
  virtual double pred_iou_thresh() const { return kPredIouThresh; }  // AutomaticOptions::pred_iou_thresh by default
};

// The masks of the image, in the reference's order.  A mask is enlarged only if its predicted IoU is above the
// threshold, and one at a time, so that memory does not grow with their number.  Throws Error for options outside their
// ranges.
std::vector<AutomaticMask> automatic_masks(const Predictor& predictor, const image::ImageView& image,
                                           const AutomaticOptions& options = {});

// The same with the embedding of the image, which is computed again only for crops.
std::vector<AutomaticMask> automatic_masks(const Predictor& predictor, const ImageEmbedding& embedding,
                                           const image::ImageView& image, const AutomaticOptions& options = {});

// The same for another source of logits, and an image of width × height pixels.
std::vector<AutomaticMask> automatic_masks(CropPredictor& predictor, int64_t width, int64_t height,
                                           const AutomaticOptions& options = {});

}  // namespace vitrail::sam
