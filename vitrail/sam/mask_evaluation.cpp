// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/mask_evaluation.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::sam {
namespace {

// The number of steps along rows and columns from each pixel to one outside the mask.
std::vector<int32_t> distances(const BinaryMask& mask) {
  const int64_t width = mask.width, height = mask.height;
  std::vector<int32_t> result(mask.pixels.size());
  const auto at = [&](int64_t x, int64_t y) {
    return x < 0 || y < 0 || x >= width || y >= height ? 0 : result[static_cast<size_t>(y * width + x)];
  };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto i = static_cast<size_t>(y * width + x);
      result[i] = mask.pixels[i] == 0 ? 0 : 1 + std::min(at(x - 1, y), at(x, y - 1));
    }
  }
  for (int64_t y = height - 1; y >= 0; --y) {
    for (int64_t x = width - 1; x >= 0; --x) {
      int32_t& value = result[static_cast<size_t>(y * width + x)];
      value = std::min({value, 1 + at(x + 1, y), 1 + at(x, y + 1)});
    }
  }
  return result;
}

struct Middle {
  Point point = {};
  int32_t distance = 0;
};

Middle middle_with_distance(const BinaryMask& mask) {
  const std::vector<int32_t> all = distances(mask);
  const auto best = std::max_element(all.begin(), all.end());
  const int64_t at = best - all.begin();
  return {{static_cast<double>(at % mask.width), static_cast<double>(at / mask.width), 1}, *best};
}

// A click in the middle of the missing or of the surplus part, whichever is thicker.
Point correction(const BinaryMask& predicted, const BinaryMask& target) {
  BinaryMask missing = make_mask(target.width, target.height), surplus = missing;
  for (size_t i = 0; i < target.pixels.size(); ++i) {
    missing.pixels[i] = target.pixels[i] != 0 && predicted.pixels[i] == 0;
    surplus.pixels[i] = target.pixels[i] == 0 && predicted.pixels[i] != 0;
  }
  const Middle in = middle_with_distance(missing), out = middle_with_distance(surplus);
  if (in.distance == 0 && out.distance == 0) return middle_of(target);  // nothing is wrong
  if (in.distance >= out.distance) return in.point;
  return {out.point.x, out.point.y, 0};
}

Box box_of(const BinaryMask& mask) {
  const PixelBox box = bounding_box(mask);
  return {static_cast<double>(box.x0), static_cast<double>(box.y0), static_cast<double>(box.x1 + 1),
          static_cast<double>(box.y1 + 1)};
}

// The measures of the objects of one image, added to the sums in `result`.
class ImageEvaluation {
 public:
  ImageEvaluation(const Predictor& predictor, const image::Image& image)
      : predictor_(predictor), embedding_(predictor.embed(image)) {}

  void add(const BinaryMask& target, MaskEvaluation& result) const {
    Prompt prompt{.points = {middle_of(target)}};
    const Masks three = predictor_.predict(embedding_, prompt);
    double best = 0, preferred = 0;
    const size_t choice = static_cast<size_t>(std::max_element(three.iou.begin(), three.iou.end()) - three.iou.begin());
    for (size_t i = 0; i < three.iou.size(); ++i) {
      const double iou = intersection_over_union(mask(three, i), target);
      best = std::max(best, iou);
      if (i == choice) preferred = iou;
    }
    result.click_best += best;
    result.click += preferred;
    prompt.multimask = false;
    result.three_clicks += after_corrections(prompt, three, choice, target);
    const Masks boxed = predictor_.predict(embedding_, {.box = box_of(target), .multimask = false});
    result.box += intersection_over_union(mask(boxed, 0), target);
    ++result.masks;
  }

 private:
  BinaryMask mask(const Masks& masks, size_t i) const {
    const Tensor logits = masks.logits.select(0, static_cast<int64_t>(i));
    return threshold(predictor_.image_logits(logits, embedding_.width, embedding_.height));
  }

  double after_corrections(Prompt prompt, Masks masks, size_t choice, const BinaryMask& target) const {
    for (int click = 0; click < 2; ++click) {
      prompt.points.push_back(correction(mask(masks, choice), target));
      prompt.mask_logits = masks.logits.select(0, static_cast<int64_t>(choice)).contiguous();
      masks = predictor_.predict(embedding_, prompt);
      choice = 0;
    }
    return intersection_over_union(mask(masks, 0), target);
  }

  const Predictor& predictor_;
  const ImageEmbedding embedding_;
};

}  // namespace

Point middle_of(const BinaryMask& mask) { return middle_with_distance(mask).point; }

double intersection_over_union(const BinaryMask& a, const BinaryMask& b) {
  if (a.width != b.width || a.height != b.height) {
    throw Error("masks", str("two of ", a.width, "×", a.height), str(b.width, "×", b.height));
  }
  int64_t both = 0, either = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    both += a.pixels[i] != 0 && b.pixels[i] != 0;
    either += a.pixels[i] != 0 || b.pixels[i] != 0;
  }
  return either == 0 ? 1 : static_cast<double>(both) / static_cast<double>(either);
}

MaskEvaluation evaluate_masks(const Predictor& predictor, const InstanceDataset& dataset,
                              const MaskEvaluationOptions& options) {
  MaskEvaluation result;
  const int64_t all = dataset.size(), total = options.max_images > 0 ? std::min(options.max_images, all) : all;
  for (int64_t i = 0; i < total; ++i) {
    const int64_t index = i * all / total;
    try {
      const image::Image image = image::read_image(dataset.path(index), {.apply_exif = options.exif});
      const std::vector<Rle> masks = dataset.masks(index, image.width, image.height);
      const ImageEvaluation evaluation(predictor, image);
      for (const Rle& mask : masks) evaluation.add(decode(mask), result);
      ++result.images;
    } catch (const Error& error) {
      if (!options.unreadable) throw;
      ++result.unreadable;
      options.unreadable(error.what());
    }
    if (options.progress) options.progress(i + 1, total);
  }
  const auto count = static_cast<double>(std::max<int64_t>(result.masks, 1));
  for (double* mean : {&result.click_best, &result.click, &result.three_clicks, &result.box}) *mean /= count;
  return result;
}

}  // namespace vitrail::sam
