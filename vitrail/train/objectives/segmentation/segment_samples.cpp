// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_samples_internal.h"

#include <utility>

#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/sam/embedding_cache.h"

namespace vitrail::train {

sam::Rle framed_mask(const sam::Rle& mask, const sam::InputFrame& frame) {
  const auto [height, width] = frame.sides(mask.height, mask.width);
  image::Image grey = image::make_image(mask.width, mask.height, 1);
  const sam::BinaryMask pixels = sam::decode(mask);
  for (size_t i = 0; i < pixels.pixels.size(); ++i) grey.pixels[i] = pixels.pixels[i] != 0 ? 255 : 0;
  const image::Image small = image::resize(grey, width, height, image::Filter::box);
  sam::BinaryMask framed = sam::make_mask(frame.size, frame.size);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) framed.row(y)[x] = small.row(y)[x] >= 128;
  }
  return sam::encode(framed);
}

int64_t SegmentSample::bytes() const {
  auto bytes = static_cast<int64_t>(image.pixels.size());
  for (const sam::Rle& mask : masks) bytes += static_cast<int64_t>(mask.counts.size() * sizeof(uint32_t));
  return bytes;
}

SegmentSamples::SegmentSamples(std::shared_ptr<const sam::InstanceDataset> dataset, const sam::InputFrame& frame,
                               const DataRecipe& recipe)
    : dataset_(std::move(dataset)), frame_(frame), exif_(recipe.exif), cache_(dataset_->size(), recipe) {}

SegmentSample SegmentSamples::read(int64_t image) const {
  const std::filesystem::path path = dataset_->path(image);
  const std::vector<std::byte> bytes = read_file(path, image::kMaxFileBytes);
  const image::Image full = image::decode(bytes, {.apply_exif = exif_}, path.string());
  SegmentSample sample{frame_.resized(full), sam::embedding_key(bytes, exif_)};
  for (const sam::Rle& mask : dataset_->masks(image, full.width, full.height)) {
    sam::Rle framed = framed_mask(mask, frame_);
    if (sam::area(framed) > 0) sample.masks.push_back(std::move(framed));
  }
  return sample;
}

std::shared_ptr<const SegmentSample> SegmentSamples::get(int64_t image) const {
  return cache_.get(image, [&] { return read(image); });
}

}  // namespace vitrail::train
