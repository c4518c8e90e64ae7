// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/unreadable_images_internal.h"

#include <algorithm>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/train/objectives/classification/class_weights_internal.h"

namespace vitrail::train {
namespace {

constexpr size_t kNamed = 5;  // images that warnings name

bool can_be_read(const data::Dataset& dataset, int64_t sample) {
  try {
    dataset.image(sample);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void UnreadableImages::add(const Subset& train, const data::Batch& batch) {
  for (const int64_t sample : batch.samples) {
    const std::vector<int64_t> labels = train.dataset->labels(sample);
    read_classes_.insert(labels.begin(), labels.end());
  }
  for (const int64_t sample : batch.skipped) {
    if (!training_.insert(sample).second || training_.size() > kNamed) continue;
    const bool last = training_.size() == kNamed;
    warn(train.dataset->path(sample) + ": cannot be read and is skipped" + (last ? "; others are only counted" : ""));
  }
}

// An epoch need not show every image: its last batch would be incomplete, or classes are balanced.
void UnreadableImages::require_classes(const RunData& data, const DataRecipe& recipe) {
  if (recipe.unreadable == data::Unreadable::error) return;
  const std::vector<int64_t> counts = class_counts(data.train, data.classes.size());
  std::set<int64_t> missing;
  for (int64_t label = 0; label < std::ssize(counts); ++label) {
    if (counts[label] > 0 && !read_classes_.contains(label)) missing.insert(label);
  }
  const std::vector<int64_t>& samples = data.train.samples;
  for (int64_t i = 0; !missing.empty() && i < data.train.size(); ++i) {
    const int64_t sample = samples.empty() ? i : samples[static_cast<size_t>(i)];
    if (training_.contains(sample)) continue;
    const std::vector<int64_t> labels = data.train.dataset->labels(sample);
    if (std::ranges::none_of(labels, [&](int64_t label) { return missing.contains(label); })) continue;
    if (!can_be_read(*data.train.dataset, sample)) continue;
    for (const int64_t label : labels) missing.erase(label);
    read_classes_.insert(labels.begin(), labels.end());
  }
  if (missing.empty()) return;
  const int64_t label = *missing.begin();
  throw Error(recipe.train, "images that can be read in every class",
              str("none of the ", counts[label], " training images of ", data.classes[label]));
}

void UnreadableImages::add_left_out(const Subset& subset, int64_t count) {
  if (count == 0 || !told_.insert(subset.name).second) return;
  warn(str(subset.name, ": ", count, count == 1 ? " image cannot be read and is" : " images cannot be read and are",
           " left out of the accuracies"));
}

}  // namespace vitrail::train
