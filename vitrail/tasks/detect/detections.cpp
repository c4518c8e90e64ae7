// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/detections.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/image/draw.h"
#include "vitrail/image/image_view.h"
#include "vitrail/image/text.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/segment_masks_internal.h"

namespace vitrail::tasks {
namespace {

image::PixelColor readable_on(const image::PixelColor& background) {
  const double luma = 0.299 * background[0] + 0.587 * background[1] + 0.114 * background[2];
  return luma > 140 ? image::PixelColor{0, 0, 0} : image::PixelColor{255, 255, 255};
}

// The label is above the box, or inside where the image ends.
void draw_detection(const Detection& detection, int64_t scale, image::Image& image) {
  const image::PixelColor color = image::voc_color(detection.index + 1);
  const auto pixel = [&](size_t side) { return static_cast<int64_t>(std::lround(detection.box[side])); };
  const image::Rectangle box{pixel(0), pixel(1), pixel(2), pixel(3)};
  image::draw_rectangle(box, 1 + scale, color, image);
  const std::string text = str(detection.label, " ", std::lround(100 * detection.score), "%");
  const int64_t width = image::text_width(text, scale) + 2 * scale, height = image::line_height(scale) + scale;
  const int64_t left = std::max<int64_t>(0, std::min(box.left, image.width - width));
  const int64_t top = box.top >= height ? box.top - height : std::max<int64_t>(0, box.top);
  image::fill_rectangle({left, top, left + width, top + height}, color, image);
  image::draw_text(text, left + scale, top + scale, scale, image, readable_on(color));
}

void draw_mask(const sam::Rle& rle, const image::PixelColor& color, image::Image& image) {
  const sam::BinaryMask mask = sam::decode(rle);
  for (int64_t y = 0; y < mask.height; ++y) {
    uint8_t* pixel = image.row(y);
    for (int64_t x = 0; x < mask.width; ++x, pixel += 3) {
      if (mask.row(y)[x] == 0) continue;
      for (size_t c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>((pixel[c] + color[c] + 1) / 2);
    }
  }
}

// Intersection over union.
float iou_of(const std::array<float, 4>& a, const std::array<float, 4>& b) {
  const auto area = [](float left, float top, float right, float bottom) {
    return std::max(0.0F, right - left) * std::max(0.0F, bottom - top);
  };
  const float both = area(std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]), std::min(a[3], b[3]));
  return both > 0 ? both / (area(a[0], a[1], a[2], a[3]) + area(b[0], b[1], b[2], b[3]) - both) : 0;
}

}  // namespace

void sort_by_score(Detections& detections) { std::ranges::stable_sort(detections, std::greater{}, &Detection::score); }

void suppress(Detections& detections, double iou) {
  Detections kept;
  for (Detection& each : detections) {
    const bool hidden = std::ranges::any_of(kept, [&](const Detection& better) {
      return better.index == each.index && iou_of(better.box, each.box) > iou;
    });
    if (!hidden) kept.push_back(std::move(each));
  }
  detections = std::move(kept);
}

std::string detections_json(const std::string& path, const Detections& detections) {
  nlohmann::ordered_json object{{"path", path}, {"detections", nlohmann::ordered_json::array()}};
  for (const Detection& each : detections) {
    nlohmann::ordered_json record{
        {"label", each.label}, {"index", each.index}, {"score", each.score}, {"box", each.box}};
    if (each.mask) record["rle"] = sam::rle_json(*each.mask);
    object["detections"].push_back(std::move(record));
  }
  return pipeline::json_line(object);
}

Tensor detections_array(const Detections& detections) {
  const Tensor array = Tensor::empty({std::ssize(detections), 6});
  float* to = array.data<float>();
  for (const Detection& each : detections) {
    to = std::ranges::copy(each.box, to).out;
    *to++ = each.score;
    *to++ = static_cast<float>(each.index);
  }
  return array;
}

image::Image detections_overlay(const image::Image& photo, const Detections& detections) {
  constexpr int64_t kPixelsOfScale = 400;
  image::Image image = image::to_image(photo, image::ColorMode::rgb);
  const int64_t scale = std::max<int64_t>(1, std::max(image.width, image.height) / kPixelsOfScale);
  for (auto each = detections.rbegin(); each != detections.rend(); ++each) {
    if (each->mask) draw_mask(*each->mask, image::voc_color(each->index + 1), image);
  }
  for (auto each = detections.rbegin(); each != detections.rend(); ++each) draw_detection(*each, scale, image);
  return image;
}

}  // namespace vitrail::tasks
