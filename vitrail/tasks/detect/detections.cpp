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

std::string text_of(const Detection& detection) {
  const std::string text = str(detection.label, " ", std::lround(100 * detection.score), "%");
  return detection.track ? str(text, " #", *detection.track) : text;
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

image::Rectangle pixels_of(const Detection& detection) {
  const auto pixel = [&](size_t side) { return static_cast<int64_t>(std::lround(detection.box[side])); };
  return {pixel(0), pixel(1), pixel(2), pixel(3)};
}

bool meet(const image::Rectangle& a, const image::Rectangle& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

// The place of a label of this size: above the box, else inside it, below it, or where else its column has room.
image::Rectangle place_of(const image::Rectangle& box, int64_t width, int64_t height, const image::Image& image,
                          const std::vector<image::Rectangle>& taken) {
  const int64_t left = std::max<int64_t>(0, std::min(box.left, image.width - width));
  const int64_t lowest = std::max<int64_t>(0, image.height - height);
  const int64_t inside = std::clamp<int64_t>(box.top, 0, lowest);
  const auto at = [&](int64_t top) { return image::Rectangle{left, top, left + width, top + height}; };
  const auto is_free = [&](int64_t top) {
    return top >= 0 && top <= lowest &&
           std::ranges::none_of(taken, [&](const image::Rectangle& other) { return meet(at(top), other); });
  };
  for (const int64_t top : {box.top - height, inside, box.bottom}) {
    if (is_free(top)) return at(top);
  }
  constexpr size_t kMaxSearched = 500;  // an image with more labels has no room
  for (int64_t away = height; away < image.height && taken.size() < kMaxSearched; away += height) {
    for (const int64_t top : {inside + away, inside - away}) {
      if (is_free(top)) return at(top);
    }
  }
  return at(inside >= height ? inside - height : inside);
}

float overlap_of(const std::array<float, 4>& a, const std::array<float, 4>& b, Overlap overlap) {
  const auto area = [](float left, float top, float right, float bottom) {
    return std::max(0.0F, right - left) * std::max(0.0F, bottom - top);
  };
  const float both = area(std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]), std::min(a[3], b[3]));
  if (!(both > 0)) return 0;
  const float first = area(a[0], a[1], a[2], a[3]), second = area(b[0], b[1], b[2], b[3]);
  return both / (overlap == Overlap::of_union ? first + second - both : std::min(first, second));
}

}  // namespace

void sort_by_score(Detections& detections) { std::ranges::stable_sort(detections, std::greater{}, &Detection::score); }

void suppress(Detections& detections, double threshold, Overlap overlap) {
  Detections kept;
  for (Detection& each : detections) {
    const bool hidden = std::ranges::any_of(kept, [&](const Detection& better) {
      return better.index == each.index && overlap_of(better.box, each.box, overlap) > threshold;
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
    if (each.track) record["track"] = *each.track;
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
  const auto color_of = [](const Detection& each) { return image::voc_color(each.index + 1); };
  for (auto each = detections.rbegin(); each != detections.rend(); ++each)
    image::draw_rectangle(pixels_of(*each), 1 + scale, color_of(*each), image);
  std::vector<image::Rectangle> places;  // the best object's label gets its place first, and is drawn last
  for (const Detection& each : detections) {
    const int64_t width = image::text_width(text_of(each), scale) + 2 * scale,
                  height = image::line_height(scale) + scale;
    places.push_back(place_of(pixels_of(each), width, height, image, places));
  }
  for (size_t i = detections.size(); i-- > 0;) {
    const image::PixelColor color = color_of(detections[i]);
    image::fill_rectangle(places[i], color, image);
    image::draw_text(text_of(detections[i]), places[i].left + scale, places[i].top + scale, scale, image,
                     readable_on(color));
  }
  return image;
}

}  // namespace vitrail::tasks
