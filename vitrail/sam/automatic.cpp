// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/automatic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/fields.h"
#include "vitrail/sam/box_nms.h"
#include "vitrail/sam/small_regions.h"

namespace vitrail::sam {
namespace {

constexpr int64_t kEdgeTolerance = 20;  // pixels (is_box_near_crop_edge)

using Grid = std::vector<std::array<double, 2>>;
using Found = std::vector<AutomaticMask>;

void check(bool valid, const char* name, const char* expected, double got) {
  if (!valid) throw Error(name, expected, str(got));
}

void check_options(const AutomaticOptions& options) {
  check_fields(describe_automatic, options);
  check(options.min_area <= options.max_area, "min_area", "at most max_area", static_cast<double>(options.min_area));
}

// The points of each layer of crops, in the unit square.
std::vector<Grid> grids_of(const AutomaticOptions& options) {
  const auto layers = static_cast<size_t>(options.crop_n_layers + 1);
  if (!options.point_grids.empty()) {
    if (options.point_grids.size() < layers) {
      throw Error("point_grids", str("a grid for each of ", layers, " layers"), str(options.point_grids.size()));
    }
    for (const Grid& grid : options.point_grids) {
      for (const auto& [x, y] : grid) {
        check(x >= 0 && x <= 1, "point_grids", "coordinates from 0 to 1", x);
        check(y >= 0 && y <= 1, "point_grids", "coordinates from 0 to 1", y);
      }
    }
    return options.point_grids;
  }
  std::vector<Grid> grids;
  constexpr double kMaxSide = 1024;  // a million points
  double side = static_cast<double>(options.points_per_side);
  if (side > kMaxSide) throw Error("points_per_side", str("at most ", kMaxSide), str(options.points_per_side));
  for (size_t layer = 0; layer < layers; ++layer) {
    const double points = side / std::pow(static_cast<double>(options.crop_n_points_downscale_factor), layer);
    if (!(points >= 1)) throw Error("points_per_side", str("at least one point per side in layer ", layer), str(side));
    grids.push_back(point_grid(static_cast<int64_t>(points)));
  }
  return grids;
}

// Whether a side of the box is near that side of the crop, and not near that side of the image.
bool near_crop_edge(const PixelBox& box, const PixelBox& crop, int64_t width, int64_t height) {
  const auto near = [](int64_t a, int64_t b) { return std::abs(a - b) <= kEdgeTolerance; };
  const auto cut = [&](int64_t side, int64_t of_crop, int64_t of_image) {
    return near(side, of_crop) && !near(side, of_image);
  };
  return cut(box.x0, crop.x0, 0) || cut(box.y0, crop.y0, 0) || cut(box.x1, crop.x1, width) ||
         cut(box.y1, crop.y1, height);
}

void keep(Found& masks, const std::vector<size_t>& indices) {
  Found kept;
  kept.reserve(indices.size());
  for (const size_t index : indices) kept.push_back(std::move(masks[index]));
  masks = std::move(kept);
}

// Suppresses masks by their boxes.
template <class Score>
void suppress(Found& masks, double threshold, Score score) {
  std::vector<PixelBox> boxes;
  std::vector<float> scores;
  for (const AutomaticMask& mask : masks) {
    boxes.push_back(mask.box);
    scores.push_back(score(mask));
  }
  keep(masks, box_nms(boxes, scores, threshold));
}

// Points of all crops.
struct PointCount {
  int64_t done = 0, total = 0;
};

// Finds the masks of one crop.
class CropSearch {
 public:
  CropSearch(CropPredictor& predictor, const PixelBox& crop, int64_t width, int64_t height,
             const AutomaticOptions& options, PointCount& points)
      : predictor_(predictor), crop_(crop), width_(width), height_(height), options_(options), points_(points) {}

  Found run(const Grid& grid) {
    predictor_.begin(crop_);
    const auto columns = static_cast<double>(crop_.x1 - crop_.x0), rows = static_cast<double>(crop_.y1 - crop_.y0);
    std::vector<Prompt> prompts;
    for (size_t i = 0; i < grid.size(); ++i) {
      prompts.push_back({.points = {{grid[i][0] * columns, grid[i][1] * rows, 1}}});
      const bool full = static_cast<int64_t>(prompts.size()) == options_.points_per_batch;
      if (full || i + 1 == grid.size()) {
        run_batch(prompts);
        points_.done += static_cast<int64_t>(prompts.size());
        if (options_.progress) options_.progress(points_.done, points_.total);
        prompts.clear();
      }
    }
    suppress(found_, options_.box_nms_thresh, [](const AutomaticMask& mask) { return mask.predicted_iou; });
    return std::move(found_);
  }

 private:
  void run_batch(std::span<const Prompt> prompts) {
    const std::vector<Masks> results = predictor_.predict(prompts);
    const auto min_iou = static_cast<float>(options_.pred_iou_thresh.value_or(predictor_.pred_iou_thresh()));
    for (size_t i = 0; i < results.size(); ++i) {
      const Point& point = prompts[i].points.front();
      for (size_t m = 0; m < results[i].iou.size(); ++m) {
        const float iou = results[i].iou[m];
        if (min_iou > 0 && !(iou > min_iou)) continue;
        add(results[i].logits.select(0, static_cast<int64_t>(m)), iou, point);
      }
    }
  }

  void add(const Tensor& mask, float iou, const Point& point) {
    const Tensor logits = predictor_.image_logits(mask, crop_.x1 - crop_.x0, crop_.y1 - crop_.y0);
    const float stability = stability_score(logits, static_cast<float>(options_.stability_score_offset));
    const bool stable = stability >= static_cast<float>(options_.stability_score_thresh);
    if (options_.stability_score_thresh > 0 && !stable) return;
    const BinaryMask pixels = threshold(logits);
    PixelBox box = bounding_box(pixels);
    box = {box.x0 + crop_.x0, box.y0 + crop_.y0, box.x1 + crop_.x0, box.y1 + crop_.y0};
    if (near_crop_edge(box, crop_, width_, height_)) return;
    found_.push_back({.rle = encode(uncrop(pixels, crop_.x0, crop_.y0, width_, height_)),
                      .box = box,
                      .predicted_iou = iou,
                      .stability_score = stability,
                      .point = {point.x + static_cast<double>(crop_.x0), point.y + static_cast<double>(crop_.y0)},
                      .crop = crop_});
  }

  CropPredictor& predictor_;
  const PixelBox crop_;
  const int64_t width_, height_;
  const AutomaticOptions& options_;
  PointCount& points_;
  Found found_;
};

float score_of_crop(const AutomaticMask& mask) {  // prefers masks of small crops
  return 1.0F / static_cast<float>((mask.crop.x1 - mask.crop.x0) * (mask.crop.y1 - mask.crop.y0));
}

// Removes small regions, and masks that became duplicates by it; untouched masks are preferred.
void clean(Found& masks, const AutomaticOptions& options) {
  std::vector<PixelBox> boxes;
  std::vector<float> scores;
  for (AutomaticMask& mask : masks) {
    BinaryMask pixels = decode(mask.rle);
    const bool filled = remove_small_regions(pixels, options.min_mask_region_area, SmallRegions::holes);
    const bool cleaned = remove_small_regions(pixels, options.min_mask_region_area, SmallRegions::islands);
    boxes.push_back(bounding_box(pixels));
    scores.push_back(filled || cleaned ? 0.0F : 1.0F);
    if (!filled && !cleaned) continue;
    mask.rle = encode(pixels);
    mask.box = boxes.back();
  }
  keep(masks, box_nms(boxes, scores, std::max(options.box_nms_thresh, options.crop_nms_thresh)));
}

}  // namespace

std::vector<AutomaticMask> automatic_masks(CropPredictor& predictor, int64_t width, int64_t height,
                                           const AutomaticOptions& options) {
  check_options(options);
  const std::vector<Crop> crops = crops_of(width, height, options.crop_n_layers, options.crop_overlap_ratio);
  const std::vector<Grid> grids = grids_of(options);
  const auto grid_of = [&](const Crop& crop) -> const Grid& { return grids[static_cast<size_t>(crop.layer)]; };
  PointCount points;
  for (const Crop& crop : crops) points.total += static_cast<int64_t>(grid_of(crop).size());
  if (options.progress) options.progress(0, points.total);
  Found masks;
  for (const Crop& crop : crops) {
    Found found = CropSearch(predictor, crop.box, width, height, options, points).run(grid_of(crop));
    std::ranges::move(found, std::back_inserter(masks));
  }
  if (crops.size() > 1) suppress(masks, options.crop_nms_thresh, score_of_crop);
  if (options.min_mask_region_area > 0) clean(masks, options);
  std::erase_if(masks, [&](const AutomaticMask& mask) {
    const int64_t pixels = area(mask.rle);
    return pixels < options.min_area || pixels > options.max_area;
  });
  return masks;
}

}  // namespace vitrail::sam
