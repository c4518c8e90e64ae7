// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/image_sets_internal.h"

#include <algorithm>
#include <functional>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

using TextOf = std::function<std::string(int64_t)>;  // for the index of an image

// The length of what all paths begin with.  A run may resume where its images have been moved to another folder.
size_t common_prefix(int64_t images, const TextOf& path_of) {
  const std::string first = images > 0 ? path_of(0) : "";
  size_t length = first.size();
  for (int64_t i = 1; i < images; ++i) {
    const std::string path = path_of(i);
    const auto differing = std::ranges::mismatch(first, path).in1;
    length = std::min(length, static_cast<size_t>(differing - first.begin()));
  }
  return length;
}

ImageSet identified(const std::string& name, int64_t images, const TextOf& path_of, const TextOf& properties_of) {
  const size_t prefix = common_prefix(images, path_of);
  uint32_t crc = 0;
  const auto add = [&](const std::string& text) { crc = crc32c(text.c_str(), text.size() + 1, crc); };
  for (int64_t i = 0; i < images; ++i) {
    add(path_of(i).substr(prefix));
    add(properties_of(i));
  }
  return {.name = name, .images = images, .checksum = crc};
}

// The index in the dataset of the i-th sample.  samples: empty for all of them
int64_t sample_at(const std::vector<int64_t>& samples, int64_t i) {
  return samples.empty() ? i : samples[static_cast<size_t>(i)];
}

ImageSet identified(const std::string& name, const Subset& subset) {
  const auto properties_of = [&](int64_t i) {
    const int64_t sample = sample_at(subset.samples, i);
    std::string properties = str(subset.dataset->content_size(sample));
    for (const int64_t label : subset.dataset->labels(sample)) properties += str(" ", label);
    return properties;
  };
  const auto path_of = [&](int64_t i) { return subset.dataset->path(sample_at(subset.samples, i)); };
  return identified(name, subset.size(), path_of, properties_of);
}

}  // namespace

std::vector<ImageSet> image_sets(const RunData& data) {
  return {identified("training", data.train), identified(kValidationSet, data.validation),
          identified("test", data.test)};
}

ImageSet image_set(const std::string& name, int64_t images, const std::function<std::string(int64_t)>& path_of) {
  return identified(name, images, path_of, [](int64_t) { return std::string(); });
}

std::string change_of_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now,
                             const std::string& name) {
  const auto old = std::ranges::find(before, name, &ImageSet::name),
             set = std::ranges::find(now, name, &ImageSet::name);
  if (old == before.end() || set == now.end() || *old == *set) return "";
  return str("\n  ", name, " images: ", old->images,
             old->images == set->images ? ", with other files, classes or sizes" : str(" → ", set->images));
}

void warn_of_other_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now) {
  std::string list;
  for (const ImageSet& set : now) list += change_of_images(before, now, set.name);
  if (!list.empty()) warn("resuming with other images, so that validation and test images may be trained ones:" + list);
}

}  // namespace vitrail::train
