// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/outline_mask.h"

#include <algorithm>
#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/sam/polygon_mask.h"

namespace vitrail::sam {
namespace {

Rle union_of(const std::vector<std::vector<double>>& polygons, int64_t width, int64_t height,
             const std::string& where) {
  if (polygons.size() == 1) return polygon_mask(polygons[0], width, height, where);
  BinaryMask all = make_mask(width, height);
  for (const std::vector<double>& polygon : polygons) {
    const BinaryMask mask = decode(polygon_mask(polygon, width, height, where));
    std::ranges::transform(all.pixels, mask.pixels, all.pixels.begin(), std::bit_or<uint8_t>());
  }
  return encode(all);
}

// The smallest box around the runs of the object; both ends belong to it.
PixelBox box_around(const Rle& rle) {
  PixelBox box{rle.width, rle.height, -1, -1};
  int64_t at = 0;
  for (size_t i = 0; i < rle.counts.size(); ++i) {
    const int64_t begin = at, end = at += rle.counts[i];
    if (i % 2 == 0 || begin == end) continue;
    const int64_t first = begin / rle.height, last = (end - 1) / rle.height;
    box.x0 = std::min(box.x0, first);
    box.x1 = std::max(box.x1, last);
    const bool is_one_column = first == last;
    box.y0 = is_one_column ? std::min(box.y0, begin % rle.height) : 0;
    box.y1 = is_one_column ? std::max(box.y1, (end - 1) % rle.height) : rle.height - 1;
  }
  return box;
}

int64_t intersection(const Rle& a, const Rle& b) {
  int64_t both = 0, at = 0, end_a = 0, end_b = 0;
  for (size_t i = 0, k = 0; i < a.counts.size() && k < b.counts.size();) {
    const int64_t next_a = end_a + a.counts[i], next_b = end_b + b.counts[k], next = std::min(next_a, next_b);
    if (i % 2 == 1 && k % 2 == 1) both += next - at;
    at = next;
    if (next_a == next) end_a = next_a, ++i;
    if (next_b == next) end_b = next_b, ++k;
  }
  return both;
}

}  // namespace

Rle outline_mask(const data::ObjectOutline& outline, int64_t width, int64_t height, const std::string& where) {
  if (!outline.polygons.empty()) return union_of(outline.polygons, width, height, where);
  if (!outline.coco_runs.empty()) return from_coco(outline.coco_runs, width, height, where);
  Rle rle{width, height, outline.runs};
  uint64_t pixels = 0;
  for (const uint32_t count : rle.counts) pixels += count;
  const auto expected = static_cast<uint64_t>(width * height);
  if (pixels != expected) throw Error(where, str("runs of ", expected, " pixels"), str(pixels));
  return rle;
}

ComparedMask::ComparedMask(Rle mask) : mask_(std::move(mask)), box_(box_around(mask_)), area_(sam::area(mask_)) {}

double ComparedMask::overlap(const ComparedMask& truth, bool crowd) const {
  const Rle& other = truth.mask_;
  if (mask_.width != other.width || mask_.height != other.height) {
    throw Error("masks", str("one size, ", other.width, "×", other.height), str(mask_.width, "×", mask_.height));
  }
  const bool apart =
      box_.x1 < truth.box_.x0 || truth.box_.x1 < box_.x0 || box_.y1 < truth.box_.y0 || truth.box_.y1 < box_.y0;
  const int64_t both = apart ? 0 : intersection(mask_, other);
  if (both == 0) return 0;
  return static_cast<double>(both) / static_cast<double>(crowd ? area_ : area_ + truth.area_ - both);
}

}  // namespace vitrail::sam
