// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/shared_images.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

constexpr size_t kLarge = 200'000, kCompared = 2'000;
constexpr size_t kMaxSearched = 20'000;  // many of a million files have the size of another, and would all be read

std::vector<int64_t> indices_of(const NamedSamples& set) {
  if (!set.samples.empty()) return set.samples;
  std::vector<int64_t> indices(static_cast<size_t>(set.dataset.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<int64_t> evenly_spaced(const std::vector<int64_t>& indices, size_t count) {
  if (indices.size() <= count) return indices;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(indices[i * indices.size() / count]);
  return chosen;
}

std::optional<uint64_t> hash_of_image(const Dataset& dataset, int64_t i) {
  try {
    return dataset.content_hash(i);
  } catch (const Error&) {
    return std::nullopt;  // reported when it is decoded
  }
}

// Samples of one size in bytes.  Their hashes are computed when a sample of the other set has that size too.
struct SameSize {
  std::vector<int64_t> first, second;
};

int64_t count_shared(const SameSize& group, const Dataset& first, const Dataset& second) {
  std::unordered_set<uint64_t> hashes;
  for (const int64_t i : group.first) {
    if (const auto hash = hash_of_image(first, i)) hashes.insert(*hash);
  }
  return std::count_if(group.second.begin(), group.second.end(), [&](int64_t i) {
    const auto hash = hash_of_image(second, i);
    return hash && hashes.contains(*hash);
  });
}

using Samples = std::vector<int64_t>;

// The samples of each image that the set has several times.
std::vector<Samples> identical_samples(const NamedSamples& set) {
  std::map<int64_t, Samples> sizes;
  for (const int64_t i : evenly_spaced(indices_of(set), kMaxSearched)) {
    const int64_t size = set.dataset.content_size(i);
    if (size >= 0) sizes[size].push_back(i);
  }
  std::vector<Samples> groups;
  for (const auto& [size, samples] : sizes) {
    if (samples.size() == 1) continue;
    std::map<uint64_t, Samples> by_hash;
    for (const int64_t i : samples) {
      if (const auto hash = hash_of_image(set.dataset, i)) by_hash[*hash].push_back(i);
    }
    for (auto& [hash, group] : by_hash) {
      if (group.size() > 1) groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace

SharedImages find_shared_images(const NamedSamples& first, const NamedSamples& second) {
  const std::vector<int64_t> candidates = indices_of(first);
  std::vector<int64_t> wanted = indices_of(second);
  if (candidates.size() + wanted.size() > kLarge) wanted = evenly_spaced(wanted, kCompared);
  std::unordered_map<int64_t, SameSize> sizes;
  for (const int64_t i : wanted) {
    const int64_t size = second.dataset.content_size(i);
    if (size >= 0) sizes[size].second.push_back(i);
  }
  for (const int64_t i : candidates) {
    const auto found = sizes.find(first.dataset.content_size(i));
    if (found != sizes.end()) found->second.first.push_back(i);
  }
  SharedImages shared{.count = 0, .compared = static_cast<int64_t>(wanted.size())};
  for (const auto& [size, group] : sizes) {
    if (!group.first.empty()) shared.count += count_shared(group, first.dataset, second.dataset);
  }
  return shared;
}

void warn_of_shared_images(const NamedSamples& first, const NamedSamples& second) {
  const SharedImages shared = find_shared_images(first, second);
  if (shared.count == 0) return;
  warn(str(shared.count, " of ", shared.compared, " ", second.name, " images", " are also ", first.name,
           " images (identical files): accuracies on them are too high"));
}

std::vector<int64_t> find_contradicting_labels(const NamedSamples& set) {
  const Dataset& dataset = set.dataset;
  std::vector<int64_t> found;
  for (const Samples& group : identical_samples(set)) {
    // A file that a list has twice is no copy.
    if (std::ranges::any_of(group, [&](int64_t i) {
          return dataset.labels(i) != dataset.labels(group.front()) && dataset.path(i) != dataset.path(group.front());
        }))
      found.insert(found.end(), group.begin(), group.end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void warn_of_repeated_images(const NamedSamples& set) {
  size_t repeated = 0;
  for (const Samples& group : identical_samples(set)) repeated += group.size() - 1;
  if (repeated == 0) return;
  warn(str(repeated, " of ", indices_of(set).size(), " ", set.name,
           " images repeat others (identical files): cross-validated accuracies on them are too high"));
}

void warn_of_contradicting_labels(const NamedSamples& set) {
  const std::vector<int64_t> found = find_contradicting_labels(set);
  if (found.empty()) return;
  const Dataset& dataset = set.dataset;
  const int64_t first = found.front();
  const auto hash = hash_of_image(dataset, first);
  const auto other = std::find_if(found.begin() + 1, found.end(), [&](int64_t i) {
    return dataset.labels(i) != dataset.labels(first) && hash_of_image(dataset, i) == hash;
  });
  std::string example = dataset.path(first);
  if (other != found.end()) example += ", " + dataset.path(*other);
  warn(str(found.size(), " ", set.name, " images have other labels than identical files: ", example,
           found.size() > 2 ? ", …" : ""));
}

}  // namespace vitrail::data
