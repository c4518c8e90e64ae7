// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/holdout_split.h"

#include <algorithm>
#include <map>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/loader/sampler_internal.h"

namespace vitrail::data {

namespace {

// The samples of each class.  Those with several labels are one class.
std::map<int64_t, std::vector<int64_t>> samples_by_class(const Dataset& dataset) {
  std::map<int64_t, std::vector<int64_t>> classes;
  for (int64_t i = 0; i < dataset.size(); ++i) classes[dataset.is_multi_label() ? 0 : dataset.label(i)].push_back(i);
  return classes;
}

// A class that would be held out as a whole leaves an image for training, where another class has one to spare.
void keep_training_samples(const std::map<int64_t, std::vector<int64_t>>& classes, std::map<int64_t, int64_t>& quotas) {
  const auto left = [&](int64_t label) { return static_cast<int64_t>(classes.at(label).size()) - quotas.at(label); };
  const auto fewer_left = [&](const auto& a, const auto& b) { return left(a.first) < left(b.first); };
  for (auto& [label, quota] : quotas) {
    if (left(label) > 0) continue;
    const auto largest = std::max_element(quotas.begin(), quotas.end(), fewer_left);
    if (left(largest->first) < 2) return;
    --quota;
    ++largest->second;
  }
}

}  // namespace

HoldoutSplit holdout_split(const Dataset& dataset, int64_t held_out, uint64_t seed) {
  const int64_t size = dataset.size();
  if (held_out < 0 || held_out >= size) throw Error("hold out", str("0 to ", size - 1, " samples"), str(held_out));
  const std::map<int64_t, std::vector<int64_t>> classes = samples_by_class(dataset);

  // Largest-remainder apportionment: the integer part of each quota first, then one each to the largest fractions.
  std::map<int64_t, int64_t> quotas;
  std::vector<std::pair<int64_t, int64_t>> remainders;  // −remainder, class
  int64_t unassigned = held_out;
  for (const auto& [label, members] : classes) {
    const int64_t scaled = held_out * static_cast<int64_t>(members.size());
    quotas[label] = scaled / size;
    unassigned -= scaled / size;
    remainders.emplace_back(-(scaled % size), label);
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < unassigned; ++i) ++quotas[remainders[i].second];
  keep_training_samples(classes, quotas);

  HoldoutSplit split;
  for (const auto& [label, members] : classes) {
    const uint64_t key = random_key("hold out", seed, static_cast<uint64_t>(label));
    const std::vector<int64_t> order = epoch_order(members, true, key, 0);
    split.held_out.insert(split.held_out.end(), order.begin(), order.begin() + quotas[label]);
    split.train.insert(split.train.end(), order.begin() + quotas[label], order.end());
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.held_out.begin(), split.held_out.end());
  return split;
}

HoldoutSplit fold_split(const Dataset& dataset, int64_t folds, int64_t fold, uint64_t seed) {
  if (folds < 2 || folds > dataset.size())
    throw Error("folds", str("2 to the ", dataset.size(), " images"), str(folds));
  if (fold < 0 || fold >= folds) throw Error("fold", str("0 to ", folds - 1), str(fold));
  HoldoutSplit split;
  int64_t position = 0;  // continues over the classes, so that the folds have equal sizes
  for (const auto& [label, members] : samples_by_class(dataset)) {
    const uint64_t key = random_key("folds", seed, static_cast<uint64_t>(label));
    for (const int64_t sample : epoch_order(members, true, key, 0))
      (position++ % folds == fold ? split.held_out : split.train).push_back(sample);
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.held_out.begin(), split.held_out.end());
  return split;
}

int64_t default_holdout(int64_t images, int64_t classes) {
  constexpr int64_t kPerClass = 20, kMax = 5000;
  return std::min({std::max(images / 5, kPerClass * classes), images / 3, kMax});
}

}  // namespace vitrail::data
