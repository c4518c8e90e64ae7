// SPDX-License-Identifier: Apache-2.0
#pragma once
// A dataset of random images without files.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

// `count` images of 8×8 noise in `classes` classes of unequal size.  Reading those in `broken` fails.
class Noise : public Dataset {
 public:
  explicit Noise(int64_t count, std::set<int64_t> broken = {}, int64_t classes = 4)
      : count_(count), classes_(classes), broken_(std::move(broken)) {}

  int64_t size() const override { return count_; }
  std::string path(int64_t i) const override { return str("noise/", i); }
  int64_t label(int64_t i) const override { return std::min(i % (classes_ + 2), classes_ - 1); }
  image::Image image(int64_t i) const override {
    ++decoded;
    if (broken_.contains(i)) throw Error(path(i), "an image", "noise");
    image::Image image = image::make_image(8, 8, 3);
    RandomStream random(random_key("noise", static_cast<uint64_t>(i)));
    for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.bits());
    return image;
  }

  mutable std::atomic<int64_t> decoded{0};

 private:
  int64_t count_, classes_;
  std::set<int64_t> broken_;
};

}  // namespace vitrail::data
