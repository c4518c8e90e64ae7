// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/detection_request.h"

#include <algorithm>

#include "vitrail/image/crop_internal.h"
#include "vitrail/tasks/detect/detection_files.h"
#include "vitrail/tasks/option_model.h"

namespace vitrail::tasks {
namespace {

constexpr double kTileMatch = 0.5;  // SAHI's postprocess_match_threshold

// The first pixels of tiles along a side.  The last one ends with the side.
std::vector<int64_t> tile_starts(int64_t length, int64_t tile, int64_t overlap) {
  std::vector<int64_t> starts{0};
  while (starts.back() + tile < length) starts.push_back(std::min(starts.back() + tile - overlap, length - tile));
  return starts;
}

// The mask of a box as the prompt, clipped to the image; empty if nothing of it is in the image.
sam::Rle mask_in_box(const sam::Predictor& predictor, const sam::ImageEmbedding& image,
                     const std::array<float, 4>& box) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  const auto clipped = [](float value, double side) { return std::clamp(static_cast<double>(value), 0.0, side); };
  const sam::Box prompt{clipped(box[0], width), clipped(box[1], height), clipped(box[2], width),
                        clipped(box[3], height)};
  if (!(prompt.x0 < prompt.x1 && prompt.y0 < prompt.y1)) return sam::encode(sam::make_mask(image.width, image.height));
  const sam::Masks masks = predictor.predict(image, {.box = prompt, .multimask = false});
  return sam::encode(sam::threshold(predictor.image_logits(masks.logits.select(0, 0), image.width, image.height)));
}

}  // namespace

void describe_detection(Fields& fields, DetectionOptions& options) {
  fields.number(
      {"threshold", "Score above which an object is in the result (default: 0.5; 0.1 for labels and examples)"},
      options.threshold, {0, 1});
  fields.number(
      {"nms",
       "Leave out an object whose box has a larger IoU with a better one of its class (default: all stay; 0.3 "
       "for examples)"},
      options.nms, {0, 1});
  fields.integer(
      {"tile", "Find small objects too: in overlapping tiles of this side in pixels, and in the whole image"},
      options.tile, 32);
  fields.number({"tile_overlap", "With tile: the part of a tile's side that the next one has too"},
                options.tile_overlap, {0, 0.9});
  fields.text({"masks", "Segment Anything model that gives each object a mask, with its box as the prompt"},
              options.masks);
}

void DetectionRequest::compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& progress) const {
  Detections all = found(item, *encoding);
  const bool has_tiles = options().tile && add_tiles(item, all, progress);
  sort_by_score(all);
  if (has_tiles) suppress(all, kTileMatch, Overlap::of_smaller);
  if (options().nms) suppress(all, *options().nms);
  all = chosen(std::move(all));
  if (segmenter_) {
    add_prompted_masks(item, all, progress);
  } else if (!has_tiles) {
    add_masks(*encoding, all);
  }
  item.value = std::move(all);
}

void DetectionRequest::open_segmenter(const Setting& setting) {
  if (options().masks.empty()) return;
  segmenter_ = option_model<SegmentModel>(setting, "masks", options().masks, kSegmenters);
  if (!segmenter_->predictor().has_decoder()) throw Error("masks", kSegmenters, "an image encoder alone");
}

void DetectionRequest::add_prompted_masks(const Item& item, Detections& all, const ProgressCallback& progress) const {
  if (all.empty()) return;
  const EncodingPointer encoding = encoding_by(*segmenter_, item);
  const sam::ImageEmbedding& embedding = static_cast<const SegmentEncoding&>(*encoding).embedding;
  int64_t done = 0;
  for (Detection& each : all) {
    if (progress) progress(done++, std::ssize(all));
    each.mask = mask_in_box(segmenter_->predictor(), embedding, each.box);
  }
}

analysis::ByteTrackerOptions DetectionRequest::tracking() const {
  constexpr double kLowScore = 0.1, kNewMargin = 0.1;  // ByteTrack's
  const double high = threshold();
  return {.high_score = high, .low_score = std::min(kLowScore, high), .new_score = std::min(1.0, high + kNewMargin)};
}

// An object whose score is below the threshold is in the result if it continues a track.
void DetectionRequest::track(Item& item, analysis::ByteTracker& tracker, int64_t frames) const {
  auto& all = std::any_cast<Detections&>(item.value);
  std::vector<analysis::ScoredBox> boxes;
  for (const Detection& each : all) boxes.push_back({each.box, each.score, each.index});
  const std::vector<std::optional<int64_t>> tracks = tracker.update(boxes, frames);
  for (size_t i = 0; i < all.size(); ++i) all[i].track = tracks[i];
  std::erase_if(all, [&](const Detection& each) { return !each.track && !(each.score > threshold()); });
}

// Adds the objects in tiles to those of the whole image, as SAHI does (Akyon et al. 2022).
bool DetectionRequest::add_tiles(const Item& item, Detections& all, const ProgressCallback& progress) const {
  constexpr int64_t kMaxTiles = 1 << 12;
  const int64_t tile = *options().tile, width = std::min(tile, item.photo.width);
  const int64_t height = std::min(tile, item.photo.height);
  if (width == item.photo.width && height == item.photo.height) return false;
  const auto overlap = static_cast<int64_t>(options().tile_overlap * static_cast<double>(tile));
  const std::vector<int64_t> lefts = tile_starts(item.photo.width, tile, overlap);
  const std::vector<int64_t> tops = tile_starts(item.photo.height, tile, overlap);
  const int64_t count = std::ssize(lefts) * std::ssize(tops);
  if (count > kMaxTiles)
    throw TooLarge("tile", str("at most ", kMaxTiles, " tiles, by larger ones or less overlap"), str(count));
  int64_t done = 0;
  for (const int64_t top : tops) {
    for (const int64_t left : lefts) {
      if (progress) progress(done++, count);
      const image::Image part = image::crop(item.photo, {left, top, width, height});
      for (Detection& each : found(item, *model_.encode(part))) {
        for (size_t side = 0; side < 4; ++side) each.box[side] += static_cast<float>(side % 2 == 0 ? left : top);
        all.push_back(std::move(each));
      }
    }
  }
  return true;
}

std::vector<uint8_t> DetectionRequest::file(const Item& item, const std::string& kind) const {
  const std::string text = detection_file(kind, item, of(item));
  return {text.begin(), text.end()};
}

}  // namespace vitrail::tasks
