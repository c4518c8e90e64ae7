// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds identical images: in two sets, such as test images among the training images, and in two classes of one set.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

// Samples of a dataset, and what they are called in messages ("training", "test").
struct NamedSamples {
  const Dataset& dataset;
  std::vector<int64_t> samples{};  // indices in the dataset; empty: all
  std::string name{};
};

struct SharedImages {
  int64_t count = 0;     // samples of the second set that are in the first
  int64_t compared = 0;  // samples of the second set that were looked for
};

// Compares the encoded images by size, and those of equal size by a 64-bit hash of their bytes.  Of large sets, 2,000
// evenly spaced samples of the second are looked for.  Images that cannot be read are in no set.
SharedImages find_shared_images(const NamedSamples& first, const NamedSamples& second);

// Warns if find_shared_images finds any.
void warn_of_shared_images(const NamedSamples& first, const NamedSamples& second);

// Samples of the set that are identical, as above, to one with other labels: ascending indices in the dataset.  Of
// more than 20,000 samples, so many evenly spaced ones are searched.
std::vector<int64_t> find_contradicting_labels(const NamedSamples& set);

// Warns if samples of the set are identical, as above: cross-validation would train and test on the same image.
void warn_of_repeated_images(const NamedSamples& set);

// Warns if find_contradicting_labels finds any, and names two of them.
void warn_of_contradicting_labels(const NamedSamples& set);

}  // namespace vitrail::data
