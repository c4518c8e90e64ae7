// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/detection_request.h"

#include <algorithm>

#include "vitrail/image/crop_internal.h"
#include "vitrail/tasks/detect/detection_files.h"

namespace vitrail::tasks {
namespace {

constexpr double kTileMatch = 0.5;  // SAHI's postprocess_match_threshold

// The first pixels of tiles along a side.  The last one ends with the side.
std::vector<int64_t> tile_starts(int64_t length, int64_t tile, int64_t overlap) {
  std::vector<int64_t> starts{0};
  while (starts.back() + tile < length) starts.push_back(std::min(starts.back() + tile - overlap, length - tile));
  return starts;
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
}

void DetectionRequest::compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& progress) const {
  Detections all = found(item, *encoding);
  const bool has_tiles = options().tile && add_tiles(item, all, progress);
  sort_by_score(all);
  if (has_tiles) suppress(all, kTileMatch, Overlap::of_smaller);
  if (options().nms) suppress(all, *options().nms);
  if (!has_tiles) add_masks(*encoding, all);
  item.value = chosen(std::move(all));
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
