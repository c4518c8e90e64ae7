// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/image_sets_internal.h"

#include <algorithm>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

struct ListedImage {
  std::string path, properties = {};  // properties: size and classes
};

// A run may resume where its images have been moved to another folder.
size_t common_prefix(const std::vector<ListedImage>& images) {
  size_t length = images.empty() ? 0 : images.front().path.size();
  for (const ListedImage& image : images) {
    const auto [end, other] = std::ranges::mismatch(images.front().path, image.path);
    length = std::min(length, static_cast<size_t>(end - images.front().path.begin()));
  }
  return length;
}

ImageSet identified(const std::string& name, const std::vector<ListedImage>& images) {
  const size_t prefix = common_prefix(images);
  uint32_t crc = 0;
  const auto add = [&](const std::string& text) { crc = crc32c(text.c_str(), text.size() + 1, crc); };
  for (const ListedImage& image : images) {
    add(image.path.substr(prefix));
    add(image.properties);
  }
  return {.name = name, .images = static_cast<int64_t>(images.size()), .checksum = crc};
}

ImageSet identified(const std::string& name, const Subset& subset) {
  std::vector<ListedImage> images;
  for (int64_t i = 0; i < subset.size(); ++i) {
    const int64_t sample = subset.samples.empty() ? i : subset.samples[static_cast<size_t>(i)];
    std::string properties = str(subset.dataset->content_size(sample));
    for (const int64_t label : subset.dataset->labels(sample)) properties += str(" ", label);
    images.push_back({subset.dataset->path(sample), properties});
  }
  return identified(name, images);
}

// samples: empty for all of them
ImageSet identified(const std::string& name, const sam::InstanceDataset* dataset,
                    const std::vector<int64_t>& samples = {}) {
  const int64_t size = dataset == nullptr ? 0 : samples.empty() ? dataset->size() : std::ssize(samples);
  std::vector<ListedImage> images;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t sample = samples.empty() ? i : samples[static_cast<size_t>(i)];
    images.push_back({.path = dataset->path(sample).string()});
  }
  return identified(name, images);
}

}  // namespace

std::vector<ImageSet> image_sets(const RunData& data) {
  return {identified("training", data.train), identified("validation", data.validation), identified("test", data.test)};
}

std::vector<ImageSet> image_sets(const SegmentData& data) {
  return {identified("training", data.train.get(), data.samples), identified("validation", data.validation.get()),
          identified("test", data.test.get())};
}

void warn_of_other_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now) {
  std::string list;
  for (const ImageSet& set : now) {
    const auto old = std::ranges::find(before, set.name, &ImageSet::name);
    if (old == before.end() || *old == set) continue;
    list += str("\n  ", set.name, " images: ", old->images,
                old->images == set.images ? ", with other files, classes or sizes" : str(" → ", set.images));
  }
  if (!list.empty()) warn("resuming with other images, so that validation and test images may be trained ones:" + list);
}

}  // namespace vitrail::train
