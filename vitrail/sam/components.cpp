// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/sam/components_internal.h"

namespace vitrail::sam {
namespace {

// Disjoint sets of provisional labels; the smallest label of a set is its root.
class LabelSets {
 public:
  int32_t add() {
    parents_.push_back(static_cast<int32_t>(parents_.size()));
    return parents_.back();
  }
  int32_t root(int32_t label) {
    while (parents_[static_cast<size_t>(label)] != label) {
      int32_t& parent = parents_[static_cast<size_t>(label)];
      parent = parents_[static_cast<size_t>(parent)];
      label = parent;
    }
    return label;
  }
  void unite(int32_t a, int32_t b) {
    a = root(a), b = root(b);
    parents_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  size_t size() const { return parents_.size(); }

 private:
  std::vector<int32_t> parents_{0};
};

// A provisional label for each pixel of `value`, united with those of its neighbours to the left and above.
void label_row(const BinaryMask& mask, uint8_t value, int64_t y, std::vector<int32_t>& labels, LabelSets& sets) {
  int32_t* row = labels.data() + y * mask.width;
  const int32_t* above = y > 0 ? row - mask.width : nullptr;
  for (int64_t x = 0; x < mask.width; ++x) {
    if (mask.row(y)[x] != value) continue;
    int32_t label = x > 0 ? row[x - 1] : 0;
    for (int64_t i = std::max<int64_t>(x - 1, 0); above && i <= std::min(x + 1, mask.width - 1); ++i) {
      if (above[i] == 0 || above[i] == label) continue;
      if (label == 0) {
        label = above[i];
      } else {
        sets.unite(label, above[i]);
      }
    }
    row[x] = label == 0 ? sets.add() : label;
  }
}

}  // namespace

Components components_of(const BinaryMask& mask, uint8_t value) {
  if (mask.pixels.size() > std::numeric_limits<int32_t>::max()) {
    throw Error("components", "a mask of less than 2^31 pixels", str(mask.width, "×", mask.height));
  }
  Components result;
  result.labels.resize(mask.pixels.size());
  LabelSets sets;
  for (int64_t y = 0; y < mask.height; ++y) label_row(mask, value, y, result.labels, sets);
  std::vector<int32_t> numbers(sets.size());  // A root's number; 0: it has none.
  const int64_t blocks_per_row = (mask.width + 1) / 2;
  for (size_t i = 0; i < result.labels.size(); ++i) {
    int32_t& label = result.labels[i];
    if (label == 0) continue;
    int32_t& number = numbers[static_cast<size_t>(sets.root(label))];
    const auto at = static_cast<int64_t>(i);
    const int64_t block = at / mask.width / 2 * blocks_per_row + at % mask.width / 2;
    if (number == 0) {
      result.sizes.push_back(0);
      result.first_blocks.push_back(block);
      number = static_cast<int32_t>(result.sizes.size());
    }
    const auto component = static_cast<size_t>(number - 1);
    ++result.sizes[component];
    result.first_blocks[component] = std::min(result.first_blocks[component], block);
    label = number;
  }
  return result;
}

}  // namespace vitrail::sam
